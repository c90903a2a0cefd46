"""llama.cpp itself as the judge of GBNF, through its C interface, over a vocabulary of the 256 bytes.

The library comes with ``xllamacpp``, whose extension exports llama.cpp's own functions; its Python layer is not used.
The layout of ``llama_model_params`` is that of the pinned version: with another, loading the vocabulary fails.
"""

from __future__ import annotations

import ctypes
import importlib.util
import tempfile
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_float, c_int32, c_int64, c_size_t, c_void_p
from functools import lru_cache
from pathlib import Path

import gguf

BYTE, CONTROL, UNKNOWN = 6, 3, 2
END, FIRST_BYTE = 2, 3
TOKENS = FIRST_BYTE + 256


class GbnfRefused(AssertionError):
    """llama.cpp could not parse a grammar."""


class _Token(Structure):
    _fields_ = [("id", c_int32), ("logit", c_float), ("p", c_float)]


class _Tokens(Structure):
    _fields_ = [("data", POINTER(_Token)), ("size", c_size_t), ("selected", c_int64), ("sorted", c_bool)]


class _ModelParameters(Structure):
    _fields_ = [
        ("pointers", c_void_p * 2),
        ("numbers", c_int32 * 5),
        ("more_pointers", c_void_p * 4),
        ("vocab_only", c_bool),
        ("flags_and_room", c_bool * 63),
    ]


class LlamaGrammar:
    """One grammar in llama.cpp's own grammar sampler. Raises GbnfRefused if llama.cpp does not parse it."""

    def __init__(self, text: str) -> None:
        self._start = _library().llama_sampler_init_grammar(_vocabulary(), text.encode(), b"root")
        if not self._start:
            raise GbnfRefused(text[:4000])

    def __del__(self) -> None:
        if self._start:
            _library().llama_sampler_free(self._start)

    def matches(self, text: str) -> bool:
        """Whether the whole text is a sentence."""
        library = _library()
        sampler = library.llama_sampler_clone(self._start)
        try:
            for byte in text.encode():
                if not _allows(sampler, FIRST_BYTE + byte):
                    return False
                library.llama_sampler_accept(sampler, FIRST_BYTE + byte)
            return _allows(sampler, END)
        finally:
            library.llama_sampler_free(sampler)


def _allows(sampler: int, token: int) -> bool:
    """Offers the sampler this token alone: judging all 259 would take 259 times as long."""
    data = (_Token * 1)(_Token(token, 0.0, 0.0))
    tokens = _Tokens(data, 1, -1, False)
    _library().llama_sampler_apply(sampler, byref(tokens))
    return bool(tokens.data[0].logit == 0.0)


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    found = importlib.util.find_spec("xllamacpp")
    assert found is not None
    assert found.origin is not None
    library = ctypes.CDLL(str(next(Path(found.origin).parent.glob("xllamacpp*.so"))))
    library.llama_model_default_params.restype = _ModelParameters
    for name, result, arguments in (
        ("llama_log_set", None, [c_void_p, c_void_p]),
        ("llama_model_load_from_file", c_void_p, [c_char_p, _ModelParameters]),
        ("llama_model_get_vocab", c_void_p, [c_void_p]),
        ("llama_sampler_init_grammar", c_void_p, [c_void_p, c_char_p, c_char_p]),
        ("llama_sampler_clone", c_void_p, [c_void_p]),
        ("llama_sampler_free", None, [c_void_p]),
        ("llama_sampler_accept", None, [c_void_p, c_int32]),
        ("llama_sampler_apply", None, [c_void_p, POINTER(_Tokens)]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_SILENT = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)(lambda *_: None)


@lru_cache(maxsize=1)
def _vocabulary() -> int:
    library = _library()
    library.llama_log_set(ctypes.cast(_SILENT, c_void_p), None)
    library.llama_backend_init()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bytes.gguf")
        _write_vocabulary(path)
        parameters = library.llama_model_default_params()
        parameters.vocab_only = True
        model = library.llama_model_load_from_file(str(path).encode(), parameters)
    assert model, "llama.cpp could not load the vocabulary"
    return int(library.llama_model_get_vocab(model))


def _write_vocabulary(path: Path) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))])
    writer.add_token_scores([0.0] * TOKENS)
    writer.add_token_types([UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
