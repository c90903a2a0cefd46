"""Limits on a grammar before any library compiles it: no domain, state or pattern may stall or kill the process.

``check_limits`` looks at the intermediate form and costs microseconds a step. ``check_text`` looks at what was written.
What size cannot tell (xgrammar takes minutes over some short expressions) a trial in a process of its own can, with
a time limit: ``trial.py``.
"""

from __future__ import annotations

from skillstate_local.errors import GrammarError
from skillstate_local.grammar.ir import Alt, Array, Excluding, Grammar, Node, Object, Quoted, Repeat, Seq, Token, Words

MAX_LIVE_WORDS = 10_000
"""Words of one vocabulary, such as the keys that may be inserted in this step."""
MAX_WORDS = 100_000
"""Words of all vocabularies together."""
MAX_NODES = 100_000
MAX_DEPTH = 160
MAX_TEXT_BYTES = 4 * 1024 * 1024


def check_limits(grammar: Grammar) -> None:
    """Raises GrammarError, naming the limit, for a grammar that is too large or too deep to be written."""
    deepest: dict[int, int] = {}
    words = 0
    stack: list[tuple[Node, int]] = [(grammar.root, 1)]
    while stack:
        node, depth = stack.pop()
        seen = deepest.get(id(node), 0)
        if seen >= depth:
            continue
        deepest[id(node)] = depth
        if depth > MAX_DEPTH:
            raise _over(grammar, "is nested deeper than", MAX_DEPTH, "levels (MAX_DEPTH)")
        if isinstance(node, Words):
            words += 0 if seen else _live(grammar, node)
            continue
        stack += [(child, depth + 1) for child in children(node)]
        if len(deepest) > MAX_NODES:
            raise _over(grammar, "has more than", MAX_NODES, "parts (MAX_NODES)")
    if words > MAX_WORDS:
        raise _over(grammar, f"names {words:,} words, more than", MAX_WORDS, "altogether (MAX_WORDS)")


def _live(grammar: Grammar, node: Words) -> int:
    if len(node.words) > MAX_LIVE_WORDS:
        said = f"has a vocabulary of {len(node.words):,} words, more than"
        raise _over(grammar, said, MAX_LIVE_WORDS, "(MAX_LIVE_WORDS)")
    return len(node.words)


def check_text(text: str, label: str = "") -> None:
    """Raises GrammarError for a written grammar of more than ``MAX_TEXT_BYTES``."""
    size = len(text) if text.isascii() else len(text.encode())
    if size > MAX_TEXT_BYTES:
        said = f"the grammar of {label or 'this step'} takes {size:,} bytes"
        raise GrammarError(
            f"{said}, more than {MAX_TEXT_BYTES:,} (MAX_TEXT_BYTES)",
            "Lower the bounds of the domain, or its number of keys.",
        )


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, those of an object's members included."""
    match node:
        case Seq(parts) | Alt(parts):
            return parts
        case Repeat(inner, _, _) | Quoted(inner) | Token(inner) | Excluding(inner, _) | Array(inner, _, _):
            return (inner,)
        case Object(groups):
            return tuple(
                part for group in groups for variant in group.variants for part in (variant.keys, variant.value)
            )
    return ()


def _over(grammar: Grammar, said: str, limit: int, unit: str) -> GrammarError:
    return GrammarError(
        f"the grammar of {grammar.label or 'this step'} {said} {limit:,} {unit}",
        "Lower the bounds of the domain, or its number of keys.",
    )
