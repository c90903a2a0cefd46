"""`domain check`, `new` and `show` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skillstate_local.commands.domain import domain_app
from skillstate_local.domains.catalog import bundled_domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.runtimes.skill_state import SkillStateRuntime

from .authored import changed

RUN = CliRunner()


def test_new_then_check_then_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert RUN.invoke(domain_app, ["new", "my-domain"]).exit_code == 0
    assert RUN.invoke(domain_app, ["new", "my-domain"]).exit_code == 2
    assert RUN.invoke(domain_app, ["new", "my-domain", "--force"]).exit_code == 0
    checked = RUN.invoke(domain_app, ["check", "my-domain.yaml"])
    assert checked.exit_code == 0
    assert "my-domain is right: 0 errors, 0 warnings." in checked.stdout
    shown = RUN.invoke(domain_app, ["show", "my-domain.yaml"])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("You keep a list of tasks.")


def test_check_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(changed("x-keys: part", "x-keys: prat"))
    result = RUN.invoke(domain_app, ["check", str(file)])
    assert result.exit_code == 1
    assert f"{file}:11: error: there is no vocabulary 'prat' (at /state/properties/stock/x-keys)" in result.stdout
    report = json.loads(RUN.invoke(domain_app, ["check", str(file), "--json"]).stdout)
    assert report["ok"] is False
    assert report["findings"][0]["line"] == 11
    shown = RUN.invoke(domain_app, ["show", str(file)])
    assert shown.exit_code == 2
    assert "there is no vocabulary 'prat'" in shown.stderr


@pytest.mark.parametrize("command", ["check", "show"])
@pytest.mark.parametrize(("name", "said"), [("warehose", "warehouse"), ("missing.yaml", "no such file")])
def test_unknown_domains(command: str, name: str, said: str) -> None:
    result = RUN.invoke(domain_app, [command, name])
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["Bad Name", "", "9", "a" * 100, "../x"])
def test_bad_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert RUN.invoke(domain_app, ["new", "--", name]).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_new_cannot_write(tmp_path: Path) -> None:
    result = RUN.invoke(domain_app, ["new", "x", "--output", str(tmp_path / "no" / "x.yaml")])
    assert result.exit_code == 3


@pytest.mark.parametrize("level", list(Level))
def test_show_is_p(level: Level) -> None:
    arguments = ["show", "ticket-triage", "--level", level.value, "--order", "action-first", "--reasoning", "80"]
    expected = SkillStateRuntime(bundled_domain("ticket-triage"), level, Order.ACTION_FIRST, 80).skill
    assert RUN.invoke(domain_app, arguments).stdout == expected.text + "\n"
    shown = json.loads(RUN.invoke(domain_app, [*arguments, "--json"]).stdout)
    assert shown["text"] == expected.text
    assert shown["hash"] == expected.hash


def test_json_of_new(tmp_path: Path) -> None:
    result = RUN.invoke(domain_app, ["new", "x", "--output", "-", "--json"])
    assert json.loads(result.stdout)["text"].count("name: x\n") == 1
