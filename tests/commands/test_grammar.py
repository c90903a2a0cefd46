"""`grammar`: what it prints, and the exit code it ends with."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from skillstate_local.commands.grammar import grammar
from skillstate_local.errors import GrammarError, UnsupportedConstraint, UsageError
from skillstate_local.grammar.ir import Dialect

STATE = '{"inventory":{"shelf_2":"item_14"}}'
SHIP = '{"state_patch":{"inventory":{"shelf_2":null}},"action":"Ship item_14 shelf_2"}'

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(grammar)


def run(*words: str) -> int:
    """The exit code of one command; errors are raised as the command line's main catches them."""
    code = app(list(words), standalone_mode=False)
    return code if isinstance(code, int) else 0


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A state file."""
    path = tmp_path / "state.json"
    path.write_text(STATE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("dialect", "start"), [("lark", "%llguidance"), ("ebnf", "root ::="), ("gbnf", "root ::="), ("regex", r"\{\"state")]
)
def test_it_prints_the_grammar(capsys: pytest.CaptureFixture[str], state: str, dialect: str, start: str) -> None:
    assert run("warehouse", "--state", state, "--dialect", dialect) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(start.replace('\\"', '"'))
    assert "item_14" in printed or dialect != "regex"


def test_json_is_one_object(capsys: pytest.CaptureFixture[str], state: str) -> None:
    assert run("warehouse", "--state", state, "--level", "effects", "--json") == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert facts["domain"] == "warehouse"
    assert facts["bytes"] == len(facts["grammar"].encode())
    assert facts["static"] is False


@pytest.mark.parametrize("dialect", Dialect)
def test_match_ends_with_0_or_1(capsys: pytest.CaptureFixture[str], state: str, dialect: Dialect) -> None:
    words = ("warehouse", "--state", state, "--observation", "Customer ordered item_14.", "--dialect", dialect.value)
    assert run(*words, "--match", SHIP) == 0
    assert capsys.readouterr().out == "accepted\n"
    assert run(*words, "--match", SHIP.replace("item_14", "item_15"), "--json") == 1
    refused = json.loads(capsys.readouterr().out)
    assert (refused["accepted"], refused["position"], refused["allowed"]) == (False, 67, "only '4 shelf_2\"}'")


def test_state_from_stdin_order_and_reasoning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STATE.encode())))
    words = ("warehouse", "--state", "-", "--order", "action-first", "--reasoning-tokens", "9", "--dialect", "gbnf")
    assert run(*words) == 0
    assert '"<reasoning>" [^<]{0,36} "</reasoning>" "{\\"action\\":"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"inventory":{"shelf_2":7}}', "/inventory/shelf_2"),
        ('{"inventory":{"shelf_999":"item_1"}}', "/inventory/shelf_999"),
        ("{}", "/inventory"),
        ("[]", "the root"),
        ('{"inventory":{', "not strict JSON"),
        ('{"a":1,"a":2}', "duplicate key"),
    ],
)
def test_a_state_that_is_none_is_a_usage_error_with_its_pointer(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        run("warehouse", "--state", str(path))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("warehous",), UsageError),
        (("no/such.yaml",), UsageError),
        (("warehouse", "--state", "no such file"), UsageError),
        (("warehouse", "--level", "free"), UsageError),
        (("warehouse", "--level", "json", "--dialect", "regex"), UnsupportedConstraint),
        (("warehouse", "--dialect", "gbnf", "--reasoning-tokens", "5000"), UnsupportedConstraint),
    ],
)
def test_mistakes_are_raised_as_errors_of_the_package(words: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        run(*words)


def test_a_state_in_which_nothing_is_legal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillstate_local.grammar import turn

    monkeypatch.setattr(turn, "legal_actions", lambda *_: None)
    with pytest.raises(GrammarError, match="no action"):
        run("warehouse")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        run("warehouse", "--state", str(path))
