"""Writes `grammars/`: the `schema`-level grammar of every bundled domain in every dialect.

    python -m skillstate_local.grammar.export grammars/

For reading, and for tools outside this project; the engines build their own. A test fails when a file is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from skillstate_local.domains.base import Domain
from skillstate_local.domains.catalog import bundled_domain, bundled_names
from skillstate_local.domains.level import Level
from skillstate_local.errors import EXIT_DONE, EXIT_USAGE, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions

COMMAND = "scripts/grammars"

_COMMENT = {Dialect.LARK: "//", Dialect.EBNF: "#", Dialect.GBNF: "#", Dialect.REGEX: "#"}
_READERS = {
    Dialect.LARK: "llguidance (`LLMatcher.grammar_from_lark`; in vLLM `structured_outputs` with the guidance backend)",
    Dialect.EBNF: "xgrammar (`GrammarCompiler.compile_grammar`)",
    Dialect.GBNF: "llama.cpp (`--grammar-file`, or the server's `grammar` field)",
    Dialect.REGEX: "outlines_core (`Index`); the expression is the last line",
}


def exported_files() -> dict[str, str]:
    """What the folder holds: file name → text."""
    files: dict[str, str] = {}
    refused: list[str] = []
    for name in bundled_names():
        domain = bundled_domain(name)
        grammar = GrammarBuilder(domain, GrammarOptions(Level.SCHEMA)).build(domain.initial_state)
        assert grammar is not None
        for dialect in Dialect:
            try:
                files[f"{name}.{dialect.value}"] = _header(domain, dialect) + grammar.write(dialect).rstrip("\n") + "\n"
            except UnsupportedConstraint as error:
                refused.append(f"- `{name}` in {dialect.value}: {error.message}.")
    files["README.md"] = _readme(refused)
    return files


def _header(domain: Domain, dialect: Dialect) -> str:
    lines = [
        f"Domain {domain.name}, version {domain.version}: its turns at level schema, patch first, in {dialect.value}.",
        f"Made by {COMMAND} (python -m skillstate_local.grammar.export grammars/); do not edit.",
    ]
    return "".join(f"{_COMMENT[dialect]} {line}\n" for line in lines)


def _readme(refused: list[str]) -> str:
    readers = "\n".join(f"| `.{dialect.value}` | {reader} |" for dialect, reader in _READERS.items())
    missing = "\n".join(refused) or "None."
    return f"""\
# Grammars

The `schema`-level grammar of every bundled domain, in every dialect that can express it: any well-typed turn, whatever
the state. Those of `delta` and `effects` are built for each step (`skillstate-local grammar DOMAIN` prints one).
Made by `{COMMAND}`; a test fails when a file is stale.

| file | read by |
|---|---|
{readers}

What `.ebnf`, `.gbnf` and `.regex` admit beyond the validator: a table whose patch may name two or more entries can
repeat a key. Validation refuses such a turn after decoding.

## Not written

{missing}
"""


def write_files(folder: Path) -> list[str]:
    """Write the folder, and remove the grammars in it that are no longer made; the names written."""
    folder.mkdir(parents=True, exist_ok=True)
    files = exported_files()
    for path in folder.iterdir():
        if path.suffix.lstrip(".") in tuple(Dialect) and path.name not in files:
            path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(files)


def main(arguments: list[str]) -> int:
    """Write the folder named by the only argument."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("Usage: python -m skillstate_local.grammar.export FOLDER", file=sys.stderr)
        return EXIT_USAGE
    for name in write_files(Path(arguments[0])):
        print(name)
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
