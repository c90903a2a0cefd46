"""The command line: what it prints where, and the exit code it ends with."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillstate_local.cli import main
from skillstate_local.errors import EngineDied
from skillstate_local.runs import session
from skillstate_local.runs.storage import JOURNAL

HEAVY = ("torch", "transformers", "vllm", "numpy", "scipy", "matplotlib", "yaml", "skillstate_local.episode")
ORACLE = ["run", "--model", "oracle", "--horizon", "4", "--seeds", "1,2"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one JSON object on standard output."""
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["compare", "--help"], ["models", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    program = f"import sys; from skillstate_local.cli import main; main({words!r}); print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split(" ")
    assert "skillstate_local.cli" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    assert "Usage" in done.stdout


def test_help_takes_half_a_second_at_most() -> None:
    """In seconds of processor time, the best of several, so that what else runs on the machine does not count."""
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "skillstate_local", "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(taken) < 0.5


@pytest.mark.parametrize("program", [[sys.executable, "-m", "skillstate_local"], ["skillstate-local"]])
def test_both_ways_to_call_it(program: list[str]) -> None:
    if program == ["skillstate-local"]:
        program = [str(Path(sys.executable).with_name("skillstate-local"))]
    done = subprocess.run([*program, "run", "--model", "orcale"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Unknown model 'orcale'" in done.stderr
    assert "Did you mean 'oracle'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_prints_its_table_its_record_and_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ORACLE) == 0
    out, err = capsys.readouterr()
    (folder,) = Path("runs").iterdir()
    assert f"folder    {folder}" in out
    assert "oracle on warehouse, delta: T = 4, 2 seeds" in out
    assert "1.00" in out
    assert "hardware" in out
    assert "steps: delta 8/8 (8 ok)" in err
    assert sorted(file.name for file in folder.iterdir()) == [JOURNAL, "lock", "summary.json", "summary.md"]
    assert json.loads((folder / "summary.json").read_text())["folder"] == str(folder)


def test_the_same_command_again_computes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ORACLE) == 0
    capsys.readouterr()
    assert main(ORACLE) == 0
    out, err = capsys.readouterr()
    assert "nothing was computed" in out
    assert err == ""


def test_json_is_all_there_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *ORACLE[1:], "--levels", "free,delta", "--chance-repeats", "2", "--json"]) == 0
    document = printed(capsys)
    conditions = document["summary"]["results"]["conditions"]
    assert list(conditions) == ["free-shallow", "free-deep", "delta", "oracle", "chance-schema", "chance-delta"]
    assert document["config"]["seeds"] == [1, 2]
    assert document["identity"]["domain"]["version"]
    assert document["sessions"][0]["hardware"]["cores"] >= 1


def test_command_line_over_environment_over_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"MODEL": "oracle", "HORIZON": "3", "SEEDS": "5", "LEVEL": "schema"}.items():
        monkeypatch.setenv(f"SKILLSTATE_{name}", value)
    assert main(["run", "--seeds", "7", "--json"]) == 0
    config = printed(capsys)["config"]
    assert (config["model"], config["horizon"], config["seeds"]) == ("oracle", 3, [7])
    assert config["conditions"][0]["level"] == "schema"
    assert config["max_retries"] == 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["runn"], 2, "runn"),
        (["run"], 2, "--model"),
        (["run", "--model", "oracle", "--levle", "delta"], 2, "--levle"),
        (["run", "--model", "oracle", "--horizon", "ten"], 2, "--horizon"),
        ([*ORACLE, "--max-concurrency", "0"], 2, "--max-concurrency 0"),
        (["run", "--model", "Qwen/Qwen3-8B"], 3, "not ready"),
        ([*ORACLE, "--out", "/proc/run"], 3, "/proc/run cannot be written"),
        (["models", "pull", "gemma-3-270"], 2, "gemma-3-270m"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_mistakes_are_messages_with_a_code(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str, as_json: bool
) -> None:
    assert main([*words, "--json"] if as_json else words) == code
    out, err = capsys.readouterr()
    if as_json:
        document = json.loads(out)
        assert document["exit_code"] == code
        assert says in f"{document['error']} {document['hint']}"
    else:
        assert says in err
    assert "Traceback" not in out + err


def test_no_command_at_all_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "compare" in capsys.readouterr().out


def test_a_mistake_leaves_no_folder() -> None:
    assert main(["run", "--model", "Qwen/Qwen3-8B"]) == 3
    assert list(Path().iterdir()) == []


def test_another_configuration_in_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ORACLE, "--out", "here"]) == 0
    assert main([*ORACLE, "--out", "here", "--horizon", "5"]) == 2
    assert "horizon: 4 → 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (EngineDied("The engine is gone.", "Run it again."), 4, "The engine is gone."),
        (KeyboardInterrupt(), 130, "Go on with: python -m skillstate_local run --model oracle"),
        (ZeroDivisionError("oops"), 1, "This is a bug"),
    ],
)
def test_what_goes_wrong_underway(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, code: int, says: str
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(session, "execute", fail)
    for name in ("MODEL", "HOME"):
        monkeypatch.delenv(f"SKILLSTATE_{name}", raising=False)
    assert main(ORACLE) == code
    err = capsys.readouterr().err
    assert says in err
    assert ("Traceback" in err) == (code == 1)


def test_a_missing_extra_is_named_with_the_command_that_helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("skillstate_local.runs.engines.find_spec", lambda _: None)
    monkeypatch.setattr("skillstate_local.runs.engines.require_path", lambda *_: Path())
    monkeypatch.setattr("skillstate_local.runs.session.require_path", lambda *_: Path())
    assert main(["run", "--model", "gemma-3-270m"]) == 3
    err = capsys.readouterr().err
    assert "torch" in err
    assert "pip install 'skillstate-local[transformers]'" in err
    assert list(Path().iterdir()) == []


def test_missing_statistics_are_noticed_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("skillstate_local.report.find_spec", lambda _: None)
    assert main(ORACLE) == 3
    assert "skillstate-local[analysis]" in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    assert "smollm2-135m-instruct" in capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    listed = {model["name"]: model for model in printed(capsys)["models"]}
    assert listed["gemma-3-270m"]["source"] == "package"
    assert isinstance(listed["gemma-3-270m"]["ready"], bool)


def test_a_users_own_models_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {
        "description": "mine",
        "license": "MIT",
        "parameters": "1M",
        "source": {"path": "weights"},
        "engines": ["transformers"],
        "limits": {"context_tokens": 512},
    }
    Path("models.yaml").write_text(json.dumps({"mine": entry}))
    assert main(["run", "--model", "mine"]) == 3
    assert "'mine' is not ready" in capsys.readouterr().err
