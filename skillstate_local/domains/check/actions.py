"""Actions: templates can be read in one way, arguments and bindings exist, effects fit Σ."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from skillstate_local.domains.action import ActionTemplate, Argument
from skillstate_local.domains.base import Domain
from skillstate_local.domains.check.samples import open_characters, sample_words, unfilled
from skillstate_local.domains.check.sources import check_source, check_where, member_of, table_named
from skillstate_local.domains.check.state import scalar_type_problems, words_of
from skillstate_local.domains.findings import Findings, nearest, shown
from skillstate_local.domains.limits import MAX_ACTIONS, MAX_ARGUMENTS, MAX_GRAMMAR_WORDS, MAX_JOINT
from skillstate_local.domains.observation import fill
from skillstate_local.domains.regex import Ranges, overlap
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import Record, Schema, Table
from skillstate_local.state.source import KeysOf, Minus, Source
from skillstate_local.state.validate import patch_problems, whole_problems

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def check_actions(domain: Domain, findings: Findings) -> None:
    """Check every template, alone and beside the others."""
    if not domain.actions:
        findings.error("/actions", "there is no action")
    if len(domain.actions) > MAX_ACTIONS:
        raise findings.limit("/actions", f"there are {len(domain.actions)} actions", MAX_ACTIONS)
    for index, action in enumerate(domain.actions):
        _action(domain, action, f"/actions/{index}", findings)
    if findings.failed:
        return
    total = sum(words_of(domain.schema, a.type) for action in domain.actions for a in action.arguments.values())
    if total > MAX_GRAMMAR_WORDS:
        raise findings.limit("/actions", f"the arguments spell out {total:,} words", MAX_GRAMMAR_WORDS)
    _ambiguity(domain, findings)


def check_placeholders(template: Json, known: Iterable[str], what: str, pointer: str, findings: Findings) -> bool:
    """Report placeholders of a patch template that are not ``known``; whether there are any."""
    names = tuple(known)
    found = [(place, name) for place, name in _placeholders(template, pointer) if name not in names]
    for place, name in found:
        findings.error(place, f"{{{name}}} is no {what}", nearest(name, names))
    return bool(found)


def _placeholders(template: Json, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(template, dict):
        for key, value in template.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from ((place, name) for name in _PLACEHOLDER.findall(key))
            yield from _placeholders(value, place)
    elif isinstance(template, list):
        for index, item in enumerate(template):
            yield from _placeholders(item, f"{pointer}/{index}")
    elif isinstance(template, str):
        yield from ((pointer, name) for name in _PLACEHOLDER.findall(template))


def _action(domain: Domain, action: ActionTemplate, pointer: str, findings: Findings) -> None:
    used = action.parts[1::2]
    for name in used:
        if name not in action.arguments:
            said = f"{{{name}}} in the template is no argument"
            findings.error(f"{pointer}/template", said, nearest(name, action.arguments))
    for name in {name for name in used if used.count(name) > 1}:
        findings.error(f"{pointer}/template", f"{{{name}}} stands twice in the template", "Give each its own name.")
    if any("{" in part or "}" in part for part in action.parts[::2]):
        hint = "Write {name} with letters, digits and underscores."
        findings.error(f"{pointer}/template", "a brace in the template belongs to no argument", hint)
    if not action.template.strip():
        findings.error(f"{pointer}/template", "the template is empty")
    if len(action.arguments) > MAX_ARGUMENTS:
        raise findings.limit(pointer, f"the action has {len(action.arguments)} arguments", MAX_ARGUMENTS)
    for name, argument in action.arguments.items():
        place = f"{pointer}/arguments/{name}"
        if name not in used:
            findings.error(place, f"the argument {name} does not stand in the template", nearest(name, used))
        _argument(domain, argument, place, findings)
    _joint(domain, action, pointer, findings)
    if action.effect is not None and not findings.failed:
        _effect(domain, action, f"{pointer}/effect", findings)


def _argument(domain: Domain, argument: Argument, pointer: str, findings: Findings) -> None:
    before = len(findings)
    scalar_type_problems(domain.schema, argument.type, pointer, findings)
    if len(findings) == before and not sample_words(domain.schema, argument.type):
        findings.error(pointer, "an argument must be text", "Use a vocabulary, an enum, a pattern or a bounded string.")
    if argument.source is not None:
        check_source(domain, argument.source, argument.type, f"{pointer}/from", findings)


def _joint(domain: Domain, action: ActionTemplate, pointer: str, findings: Findings) -> None:
    if len(action.joint) > MAX_JOINT:
        raise findings.limit(f"{pointer}/joint", f"there are {len(action.joint)} joint bindings", MAX_JOINT)
    for index, entry in enumerate(action.joint):
        place = f"{pointer}/joint/{index}"
        for word, name in (("key", entry.key), ("value", entry.value)):
            if name not in action.arguments:
                findings.error(f"{place}/{word}", f"{shown(name)} is no argument", nearest(name, action.arguments))
        table = table_named(domain, entry.table, f"{place}/table", findings)
        if table is None:
            continue
        check_where(domain, table, entry.where, place, findings)
        if entry.member:
            member_of(table, entry.member, f"{place}/member", findings)
        elif isinstance(table.value, Record):
            findings.error(place, f"{entry.table} holds records; say which member", nearest("", table.value.members))


def _effect(domain: Domain, action: ActionTemplate, pointer: str, findings: Findings) -> None:
    if check_placeholders(action.effect, action.arguments, "argument of the action", pointer, findings):
        return
    for words in sample_bindings(domain.schema, action):
        patch = fill(action.effect, words)
        for problem in patch_problems(domain.schema, patch):
            place = pointer + unfilled(action.effect, words, problem.pointer)
            findings.error(place, f"the effect does not fit the state: {problem.message}")
        if not findings.failed:
            _complete(domain, action, words, pointer, findings)


def _complete(
    domain: Domain, action: ActionTemplate, words: Mapping[str, str], pointer: str, findings: Findings
) -> None:
    """Warn about an effect that may insert an entry without all its members."""
    for name, template in action.effect.items():
        kind = domain.schema.root.members[name]
        if not isinstance(kind, Table) or not isinstance(template, dict):
            continue
        for key, value in template.items():
            filled = fill(value, words)
            if filled is None or _exists(action, name, key):
                continue
            for problem in whole_problems(domain.schema, kind.value, filled, ""):
                said = f"if there is no such entry yet, the effect leaves it incomplete: {problem.message}"
                hint = "Set all members, or bind the argument to entries that exist with keys_of."
                findings.warn(f"{pointer}/{name}/{key}", f"{said} ({problem.pointer})", hint)


def _exists(action: ActionTemplate, table: str, key: str) -> bool:
    """Whether a key of an effect is always one that the table already has."""
    match = _PLACEHOLDER.fullmatch(key)
    if match is None:
        return False
    name = match[1]
    return any(entry.table == table and entry.key == name for entry in action.joint) or _keys_of(
        action.arguments[name].source, table
    )


def _keys_of(source: Source | None, table: str) -> bool:
    if isinstance(source, Minus):
        return _keys_of(source.base, table)
    return isinstance(source, KeysOf) and source.table == table


def sample_bindings(schema: Schema, action: ActionTemplate) -> list[dict[str, str]]:
    """A few assignments of words to the arguments of an action."""
    words = {name: sample_words(schema, argument.type) for name, argument in action.arguments.items()}
    rounds = max((len(options) for options in words.values()), default=1)
    return [{name: options[turn % len(options)] for name, options in words.items()} for turn in range(min(rounds, 4))]


def _ambiguity(domain: Domain, findings: Findings) -> None:
    """No command text may be read in two ways: by the arguments of one template, or by two templates."""
    for index, action in enumerate(domain.actions):
        names = _open_arguments(domain.schema, action)
        if len(names) > 1:
            hint = "Let one of them be a closed vocabulary, or put a separator between that neither can contain."
            said = f"nothing tells where {names[0]} ends and {names[1]} begins"
            findings.error(f"/actions/{index}/template", said, hint)
    if findings.failed:
        return
    for index, action in enumerate(domain.actions):
        for words in sample_bindings(domain.schema, action):
            text = str(fill(action.template, words))
            others = [reading for reading in itertools.islice(domain.readings(text), 3) if reading.words != words]
            others += [r for r in domain.readings(text) if r.template is not action and r not in others]
            for other in others[:1]:
                said = f"{shown(text)} can also be read as {other.template.template!r}"
                findings.error(f"/actions/{index}/template", said, "Begin each command with a word of its own.")


def _open_arguments(schema: Schema, action: ActionTemplate) -> list[str]:
    """The arguments whose words may contain the first character of what separates arguments, or of what follows."""
    parts = action.parts
    characters = {name: open_characters(schema, action.arguments[name].type) for name in parts[1::2]}
    separators: Ranges = tuple((ord(part[0]), ord(part[0])) for part in parts[2:-1:2] if part)
    found = {name: None for name in parts[1::2] if overlap(characters[name], separators)}
    for left, literal, right in zip(parts[1::2], parts[2::2], parts[3::2], strict=False):
        if not literal and overlap(characters[left], characters[right]):
            found |= {left: None, right: None}
    return list(found)
