"""The checked-in grammars are those that the code writes now, and the libraries read them as they lie there."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillstate_local.domains.catalog import bundled_domain, bundled_names
from skillstate_local.domains.level import Order
from skillstate_local.domains.turn import write_turn
from skillstate_local.grammar.export import exported_files, main, write_files
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.match import match_written
from tests.grammar.llama_cpp import LlamaGrammar

FOLDER = Path(__file__).parents[2] / "grammars"
FILES = sorted(path.name for path in FOLDER.iterdir() if path.suffix != ".md")


def test_no_file_is_stale_missing_or_left_over() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    made = exported_files()
    stale = sorted(name for name in found.keys() | made.keys() if found.get(name) != made.get(name))
    assert not stale, "run scripts/grammars"


def test_every_bundled_domain_has_every_dialect_or_a_reason() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in bundled_names():
        for dialect in Dialect:
            assert f"{name}.{dialect.value}" in FILES or f"`{name}` in {dialect.value}: " in readme


@pytest.mark.parametrize("name", FILES)
def test_the_libraries_read_the_files(name: str) -> None:
    domain, _, dialect = name.rpartition(".")
    text = (FOLDER / name).read_text(encoding="utf-8")
    if dialect == Dialect.REGEX:
        text = text.splitlines()[-1]
    example = bundled_domain(domain).examples[0]
    for patch, action, accepted in (
        (example.patch, example.action, True),
        ({"no such field": 1}, example.action, False),
    ):
        turn = write_turn(patch, action, Order.PATCH_FIRST)
        assert match_written(text, turn, Dialect(dialect)).accepted is accepted
        if dialect == Dialect.GBNF:
            assert LlamaGrammar(text).matches(turn) is accepted


def test_writing_removes_what_is_no_longer_made(tmp_path: Path) -> None:
    for name in ("gone.lark", "kept.txt"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    names = write_files(tmp_path)
    assert sorted([*names, "kept.txt"]) == sorted(path.name for path in tmp_path.iterdir())


def test_the_command_wants_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([]) == 2
    assert "FOLDER" in capsys.readouterr().err
    assert main([str(tmp_path / "made")]) == 0
    assert "warehouse.gbnf" in capsys.readouterr().out.splitlines()
