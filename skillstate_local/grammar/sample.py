"""Random walks through a grammar: the chance floor, and the property tests' source of sentences."""

from __future__ import annotations

from random import Random

from skillstate_local.errors import GrammarError
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Chars,
    Excluding,
    Group,
    Lit,
    Node,
    Number,
    Object,
    Quoted,
    Repeat,
    Seq,
    Token,
    Words,
)


def sample(node: Node, rng: Random) -> str:
    """One sentence: uniform over alternatives, words, numbers, lengths, and presence of each object entry."""
    match node:
        case Lit(text):
            return text
        case Words(choices):
            return rng.choice(choices)
        case Seq(parts):
            return "".join(sample(part, rng) for part in parts)
        case Alt(options):
            return sample(rng.choice(options), rng)
        case Quoted(content):
            return f'"{sample(content, rng)}"'
        case Token(content):
            return sample(content, rng)
        case Excluding(content, excluded):
            return _other(content, excluded, rng)
        case Repeat(inner, minimum, maximum):
            return "".join(sample(inner, rng) for _ in range(rng.randint(minimum, maximum)))
        case Chars(ranges):
            return _character(ranges, rng)
        case Number():
            return spell(rng.randint(node.minimum, node.maximum), node.scale)
        case Array(item, minimum, maximum):
            return f"[{','.join(sample(item, rng) for _ in range(rng.randint(minimum, maximum)))}]"
        case Object():
            return _object(node, rng)


def spell(units: int, scale: int) -> str:
    """The canonical text of ``units`` · 10**-scale."""
    if not scale:
        return str(units)
    digits = str(abs(units)).zfill(scale + 1)
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _character(ranges: tuple[tuple[int, int], ...], rng: Random) -> str:
    """Uniform over ranges first, so that rare ranges are met as well as the vast ones."""
    low, high = rng.choice(ranges)
    return chr(rng.randint(low, high))


def _other(content: Node, excluded: tuple[str, ...], rng: Random) -> str:
    for _ in range(1000):
        text = sample(content, rng)
        if text not in excluded:
            return text
    raise GrammarError("a vocabulary has hardly a word that is not taken")


def _object(node: Object, rng: Random) -> str:
    counts = [rng.randint(group.minimum, group.maximum) for group in node.groups]
    while sum(counts) > node.maximum:
        spare = [i for i, group in enumerate(node.groups) if counts[i] > group.minimum]
        counts[rng.choice(spare)] -= 1
    if node.nonempty and not sum(counts):
        counts[rng.randrange(len(counts))] = 1
    members: dict[str, str] = {}
    for group, count in zip(node.groups, counts, strict=True):
        _add_members(group, count, members, rng)
    texts = [f"{key}:{value}" for key, value in members.items()]
    rng.shuffle(texts)
    return f"{{{','.join(texts)}}}"


def _add_members(group: Group, count: int, members: dict[str, str], rng: Random) -> None:
    """Add ``count`` members under keys that are not used yet; uniform over the keys where all are known."""
    if all(isinstance(v.keys, Words) for v in group.variants):
        pool = [(f'"{key}"', v) for v in group.variants if isinstance(v.keys, Words) for key in v.keys.words]
        free = [(key, v) for key, v in pool if key not in members]
        for key, variant in rng.sample(free, min(count, len(free))):
            members[key] = sample(variant.value, rng)
        return
    for _ in range(count):
        variant = rng.choice(group.variants)
        key = sample(Quoted(variant.keys) if isinstance(variant.keys, Words) else variant.keys, rng)
        members.setdefault(key, sample(variant.value, rng))
