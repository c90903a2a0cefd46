"""A turn (R, ΔΣ, a) as text: writing it, finding it in what a model wrote, and parsing it strictly."""

from __future__ import annotations

import re
from typing import NamedTuple

from skillstate_local.domains.level import Order
from skillstate_local.state.canonical import Json, StrictJsonError, dumps, loads

PATCH_KEY = "state_patch"
ACTION_KEY = "action"
REASONING_OPEN = "<reasoning>"
REASONING_CLOSE = "</reasoning>"

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_CANDIDATE = re.compile(r'\{\s*["}]')
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)


class Turn(NamedTuple):
    """What a model answered: reasoning (archived, never prompted again), state patch and action text."""

    reasoning: str
    patch: Json
    action: str


class TurnTextError(ValueError):
    """No strict JSON object could be read; the message says why."""


class EnvelopeError(ValueError):
    """The object is not exactly ``{"state_patch": object, "action": string}``."""


def write_turn(patch: Json, action: str, order: Order, reasoning: str = "") -> str:
    """The canonical text of a turn."""
    members = {PATCH_KEY: patch, ACTION_KEY: action}
    keys = (PATCH_KEY, ACTION_KEY) if order is Order.PATCH_FIRST else (ACTION_KEY, PATCH_KEY)
    section = f"{REASONING_OPEN}{reasoning}{REASONING_CLOSE}" if reasoning else ""
    return section + dumps({key: members[key] for key in keys})


def split_reasoning(text: str) -> tuple[str, str]:
    """(reasoning, rest). The section ends at the *first* closing tag; without one there is no section.

    Nor is there one where the text begins with the object: there the tag stands inside a string.
    """
    head, closing, rest = text.partition(REASONING_CLOSE)
    if not closing or text.lstrip().startswith("{"):
        return "", text
    return head.removeprefix(REASONING_OPEN), rest


def find_object(text: str) -> str:
    """The object of an unconstrained answer: the last fenced block, else the first balanced object after reasoning.

    Returns what looks like an object even when it is cut off, so that parsing can say what is wrong with it; raises
    TurnTextError when nothing does.
    """
    _, rest = split_reasoning(text)
    fenced = _FENCE.findall(rest)
    if fenced and "{" in fenced[-1]:
        rest = fenced[-1]
    start = _CANDIDATE.search(rest)
    if start is None:
        raise TurnTextError("there is no JSON object in the answer")
    return _balanced(rest[start.start() :])


def _balanced(text: str) -> str:
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text):
        if token.group() == "{":
            depth += 1
        elif token.group() == "}":
            depth -= 1
            if depth == 0:
                return text[: token.end()]
    return text


def parse_object(text: str) -> Json:
    """Strict JSON of one object; raises TurnTextError."""
    try:
        value = loads(text)
    except StrictJsonError as error:
        raise TurnTextError(f"not strict JSON: {error}") from None
    if not isinstance(value, dict):
        raise TurnTextError("the answer is not a JSON object")
    return value


def open_envelope(value: Json) -> tuple[dict[str, Json], str]:
    """(patch, action) of a parsed object; raises EnvelopeError."""
    extra = sorted(value.keys() - {PATCH_KEY, ACTION_KEY})
    if extra:
        raise EnvelopeError(f"unexpected key {extra[0]!r}; exactly {PATCH_KEY!r} and {ACTION_KEY!r} are allowed")
    for key, kind, name in ((PATCH_KEY, dict, "an object"), (ACTION_KEY, str, "a string")):
        if key not in value:
            raise EnvelopeError(f"{key!r} is missing")
        if not isinstance(value[key], kind):
            raise EnvelopeError(f"{key!r} must be {name}")
    return value[PATCH_KEY], value[ACTION_KEY]
