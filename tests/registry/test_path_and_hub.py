"""Models that are a folder on this machine, or a repository on a hub (here a small server that speaks its API)."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skillstate_local.errors import ModelNotReady
from skillstate_local.registry import Registry, model_identity, pull, readiness, ready_path, status

from .conftest import entry

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": b"weights" * 50,
    "pytorch_model.bin": b"not wanted",
    "onnx/model.json": b"not wanted",
}


@pytest.fixture
def local(tmp_path: Path, home: Path, registry_of: Callable[..., Registry]) -> Registry:
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "a.safetensors", "b.safetensors"):
        (folder / name).write_text(name)
    return registry_of({"mine": entry({"path": "weights"})})


def test_path_is_ready_relative_to_the_file(local: Registry, tmp_path: Path) -> None:
    assert ready_path("mine", local) == tmp_path / "weights" == pull("mine", registry=local)


@pytest.mark.parametrize(
    ("absent", "why"),
    [("config.json", "no config.json"), ("tokenizer.json", "no tokenizer"), ("*.safetensors", "no complete set")],
)
def test_incomplete_path(local: Registry, tmp_path: Path, absent: str, why: str) -> None:
    for path in (tmp_path / "weights").glob(absent):
        path.unlink()
    assert why in status("mine", registry=local).why
    with pytest.raises(ModelNotReady, match=why) as caught:
        pull("mine", registry=local)
    assert "models.yaml" in caught.value.hint


def test_missing_shard(local: Registry, tmp_path: Path) -> None:
    index = {"weight_map": {"x": "a.safetensors", "y": "c.safetensors"}}
    (tmp_path / "weights" / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "no complete set of weights" in status("mine", registry=local).why


def test_checksums_are_computed_once_until_a_file_changes(
    local: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = model_identity("mine", local)
    lines = "".join(
        f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in ("a.safetensors", "b.safetensors")
    )
    assert first["weights_sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    hashed: list[str] = []
    real = readiness.sha256_of
    monkeypatch.setattr(readiness, "sha256_of", lambda path: hashed.append(path.name) or real(path))
    assert model_identity("mine", local) == first
    assert hashed == []
    (tmp_path / "weights" / "a.safetensors").write_text("other")
    assert model_identity("mine", local)["weights_sha256"] != first["weights_sha256"]
    assert hashed == ["a.safetensors"]


class Hub(BaseHTTPRequestHandler):
    """The few answers that a download asks of a hub."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _answer(self, with_body: bool) -> None:
        path = self.path.split("?")[0]
        tree = [{"type": "file", "path": name, "size": len(data), "oid": name} for name, data in FILES.items()]
        siblings = [{"rfilename": name, "size": len(data)} for name, data in FILES.items()]
        code, body, etag = 200, b"", "x"
        if path.startswith("/api/models/own/gated"):
            code, body = 403, b"{}"
        elif path.startswith("/api/models/own/tiny/tree/"):
            body = json.dumps(tree).encode()
        elif path.startswith("/api/models/own/tiny"):
            body = json.dumps({"id": "own/tiny", "sha": COMMIT, "siblings": siblings}).encode()
        elif (name := path.removeprefix(f"/own/tiny/resolve/{COMMIT}/")) in FILES:
            body, etag = FILES[name], hashlib.sha256(FILES[name]).hexdigest()
        else:
            code, body = 404, b"{}"
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if code != 200:
            self.send_header("X-Error-Code", "GatedRepo" if code == 403 else "RepoNotFound")
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


SCRIPT = """
import json, sys
from pathlib import Path
from skillstate_local.errors import SkillStateError
from skillstate_local.registry import Registry, model_identity, pull, status
from skillstate_local.registry.load import read_models
registry = Registry(read_models(Path(sys.argv[1])))
try:
    folder = pull(sys.argv[2], registry=registry)
except SkillStateError as error:
    print(json.dumps({"kind": type(error).__name__, "text": str(error), "code": error.exit_code}))
else:
    print(json.dumps({"files": sorted(p.name for p in folder.rglob("*") if p.is_file()),
                      "ready": status(sys.argv[2], registry=registry).ready,
                      "identity": model_identity(sys.argv[2], registry)}))
"""


def pull_from(endpoint: str, name: str, registry: Registry, tmp_path: Path, **env: str) -> dict[str, object]:
    """Pull in a process of its own: huggingface_hub reads its environment at import."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    clean |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", **env}
    file = str(registry.get(name).file)
    done = subprocess.run([sys.executable, "-c", SCRIPT, file, name], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture
def repositories(home: Path, registry_of: Callable[..., Registry]) -> Registry:
    return registry_of({name: entry({"hub": {"id": name}}) for name in ("own/tiny", "own/gated", "own/absent")})


def test_hub_pull_then_offline(hub: str, repositories: Registry, tmp_path: Path) -> None:
    online = pull_from(hub, "own/tiny", repositories, tmp_path)
    assert online["files"] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert online["ready"] is True
    identity = online["identity"]
    assert isinstance(identity, dict)
    assert identity["revision"] == COMMIT
    assert identity["weights_sha256"] == hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    offline = pull_from("http://127.0.0.1:9", "own/tiny", repositories, tmp_path, HF_HUB_OFFLINE="1")
    assert offline == online


@pytest.mark.parametrize(
    ("name", "says"), [("own/gated", "set HF_TOKEN"), ("own/absent", "no such repository, or it is private")]
)
def test_hub_refuses(hub: str, repositories: Registry, tmp_path: Path, name: str, says: str) -> None:
    answer = pull_from(hub, name, repositories, tmp_path)
    assert (answer["kind"], answer["code"]) == ("ModelNotReady", 3)
    assert says in str(answer["text"])


def test_hub_unreachable(repositories: Registry, tmp_path: Path) -> None:
    answer = pull_from("http://127.0.0.1:9", "own/tiny", repositories, tmp_path)
    assert (answer["kind"], answer["code"]) == ("ModelNotReady", 3)
    assert "source: {path: …}" in str(answer["text"])


def test_hub_that_never_answers(repositories: Registry, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        answer = pull_from(f"http://127.0.0.1:{silent.getsockname()[1]}", "own/tiny", repositories, tmp_path)
        assert time.monotonic() - started < 15
    assert answer["kind"] == "ModelNotReady"


def test_offline_without_a_copy(repositories: Registry, tmp_path: Path) -> None:
    answer = pull_from("http://127.0.0.1:9", "own/tiny", repositories, tmp_path, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set" in str(answer["text"])
