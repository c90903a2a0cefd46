"""The whole turn as one regular expression, for outlines_core (Rust's ``regex`` syntax).

A regular expression cannot share: an object is written out along every order of its members, so the text grows with
their factorial, and a nested object stands wherever its parent does. The size is therefore worked out before anything
is written, and ``MAX_REGEX_CHARS`` is the most. One exception to exactness, caught by validation: a table whose patch
may name two or more entries can repeat a key. The reasoning section is bounded by characters, as in GBNF.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillstate_local.domains.turn import REASONING_CLOSE, REASONING_OPEN
from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.bnf import MAX_STATES, live_states, may_end, states, successors
from skillstate_local.grammar.gbnf import CHARS_PER_TOKEN
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Chars,
    Excluding,
    Grammar,
    Lit,
    Node,
    Object,
    Quoted,
    Repeat,
    Seq,
    Token,
    Variant,
)
from skillstate_local.grammar.regex import character_class, escape_regex, regex_of, vocabulary_regex

MAX_REGEX_CHARS = 64 * 1024
MANY_CODE_POINTS = 1_000
HINT = "Use `--grammar-backend llguidance` (dialect lark), which writes any order in one rule."


def write_regex(grammar: Grammar) -> str:
    """The turn as one expression, to be matched as a whole.

    Raises UnsupportedConstraint, naming the size, where it would be longer than ``MAX_REGEX_CHARS``.
    """
    rope = _rope(grammar)
    if rope.size > MAX_REGEX_CHARS:
        raise UnsupportedConstraint(
            f"as a regular expression {grammar.label or 'this grammar'} has {rope.size:,} characters, at most "
            f"{MAX_REGEX_CHARS:,} are written: objects are spelled out in every order of their members, at every depth",
            HINT,
        )
    return "".join(rope.texts())


def regex_size(grammar: Grammar) -> int:
    """Length in characters of the expression, without writing it."""
    return _rope(grammar).size


def free_characters(grammar: Grammar) -> int:
    """How many characters of free text the expression holds along all its paths."""
    return _rope(grammar).free


def _rope(grammar: Grammar) -> Rope:
    return join(_reasoning(grammar.reasoning_tokens), _Expansion().of(grammar.root))


def _reasoning(tokens: int) -> Rope:
    if not tokens:
        return join()
    text = times(Rope(("[^<]",), len("[^<]"), 1), 0, CHARS_PER_TOKEN * tokens)
    return join(escape_regex(REASONING_OPEN), text, escape_regex(REASONING_CLOSE))


@dataclass(frozen=True, slots=True, eq=False)
class Rope:
    """Text that is not put together yet: pieces may be shared, so its size is known before it takes any memory.

    ``free`` counts the characters of free text along all paths, for each of which an index lists the whole vocabulary.
    """

    parts: tuple[str | Rope, ...]
    size: int
    free: int = 0

    def texts(self) -> Iterator[str]:
        """The text in pieces."""
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from part.texts()


def join(*parts: str | Rope) -> Rope:
    """The parts one after another."""
    ropes = [part for part in parts if isinstance(part, Rope)]
    size = sum(len(part) for part in parts if isinstance(part, str)) + sum(rope.size for rope in ropes)
    return Rope(parts, size, sum(rope.free for rope in ropes))


def choice(options: Iterable[str | Rope], suffix: str = "") -> Rope:
    """One of the options; ``suffix`` says how often."""
    joined = [piece for option in options for piece in ("|", option)][1:]
    return join("(", *joined, f"){suffix}")


def times(inner: Rope, minimum: int, maximum: int) -> Rope:
    """A bounded repetition."""
    once = choice([inner], f"{{{minimum},{maximum}}}")
    return Rope(once.parts, once.size, inner.free * maximum)


class _Expansion:
    """Expands one grammar; a shared node is expanded once, though it is written wherever it stands."""

    def __init__(self) -> None:
        self._known: dict[int, Rope] = {}
        self._kept: list[Node] = []

    def of(self, node: Node) -> Rope:
        """The expression for a node."""
        if id(node) not in self._known:
            self._known[id(node)] = self._write(node)
            self._kept.append(node)
        return self._known[id(node)]

    def _write(self, node: Node) -> Rope:
        match node:
            case Seq(parts):
                return join(*map(self.of, parts))
            case Alt(options):
                return choice(self._options(options))
            case Repeat(inner, minimum, maximum):
                return times(self.of(inner), minimum, maximum)
            case Quoted(content):
                return join('"', self.of(content), '"')
            case Token(content):
                return self.of(content)
            case Array():
                return self._array(node)
            case Object():
                return self._object(node)
            case Chars(code_points):
                free = sum(high - low for low, high in code_points) > MANY_CODE_POINTS
                return Rope((character_class(code_points),), len(character_class(code_points)), int(free))
            case Excluding():
                raise UnsupportedConstraint("a regular expression cannot leave out the words that are taken", HINT)
        return join(regex_of(node))

    def _options(self, options: tuple[Node, ...]) -> list[str | Rope]:
        """Literals folded like a vocabulary: the escapes of a string's character take 50 characters, not 250."""
        literals = tuple(sorted({option.text for option in options if isinstance(option, Lit)}))
        others: list[str | Rope] = [self.of(option) for option in options if not isinstance(option, Lit)]
        return [*others, vocabulary_regex(literals)] if literals else others

    def _array(self, node: Array) -> Rope:
        if node.maximum == 0:
            return join(r"\[\]")
        item = self.of(node.item)
        more = times(join(",", item), max(0, node.minimum - 1), node.maximum - 1)
        some = choice([join(item, more)], "" if node.minimum else "?")
        return join(r"\[", some, r"\]")

    def _object(self, node: Object) -> Rope:
        if not node.groups or node.maximum == 0:
            return join(r"\{\}")
        if len(node.groups) > 1 and states(node) > MAX_STATES:
            raise UnsupportedConstraint(
                f"an object of {len(node.groups)} members in any order has no regular expression of reasonable size",
                HINT,
            )
        members = [choice(map(self._member, group.variants)) for group in node.groups]
        return join(r"\{", _Members(node, members).inside(), r"\}")

    def _member(self, variant: Variant) -> Rope:
        keys = variant.keys if isinstance(variant.keys, Quoted) else Quoted(variant.keys)
        return join(self.of(keys), ":", self.of(variant.value))


class _Members:
    """The members of one object in any order, state by state; a state says how many of each group have been used."""

    def __init__(self, node: Object, members: list[Rope]) -> None:
        self._node = node
        self._members = members
        self._live = live_states(node)
        self._known: dict[tuple[int, ...], Rope] = {}

    def inside(self) -> Rope:
        """What stands between the braces."""
        start = tuple(0 for _ in self._members)
        options = [join(self._members[i], self._rest(after)) for i, after in self._next(start)]
        empty = may_end(self._node, start) and not self._node.nonempty
        return choice(options, "?" if empty else "")

    def _next(self, used: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        return [(i, after) for i, after in successors(self._node, used) if after in self._live]

    def _rest(self, used: tuple[int, ...]) -> Rope:
        """What may follow in a state, commas first."""
        if used not in self._known:
            self._known[used] = self._write(used)
        return self._known[used]

    def _write(self, used: tuple[int, ...]) -> Rope:
        following = self._next(used)
        if not following:
            return join("")
        if len(following) == 1:
            i = following[0][0]
            group = self._node.groups[i]
            if all(n == g.maximum for j, (n, g) in enumerate(zip(used, self._node.groups, strict=True)) if j != i):
                most = min(group.maximum - used[i], self._node.maximum - sum(used))
                return times(self._after_comma(i), max(0, group.minimum - used[i]), most)
        options = [join(self._after_comma(i), self._rest(after)) for i, after in following]
        return choice(options, "?" if may_end(self._node, used) else "")

    def _after_comma(self, i: int) -> Rope:
        return join(",", self._members[i])
