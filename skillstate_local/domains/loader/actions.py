"""``actions:`` command templates with typed arguments, joint bindings and effects."""

from __future__ import annotations

from collections.abc import Mapping

from skillstate_local.domains.action import ActionTemplate, Argument, Entry
from skillstate_local.domains.findings import Findings
from skillstate_local.domains.limits import MAX_ACTIONS, MAX_ARGUMENTS, MAX_JOINT
from skillstate_local.domains.loader.scalars import STRING, scalar_type, vocabulary_id
from skillstate_local.domains.loader.schema import SchemaReader
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.sources import read_source, read_where
from skillstate_local.domains.loader.yaml_tree import Node, plain
from skillstate_local.state.schema import ScalarType, Vocabulary
from skillstate_local.state.source import Source

_ACTION = ("template", "arguments", "joint", "effect", "description")
_ARGUMENT = ("vocabulary", "type", *STRING, "anyOf", "from", "description")
_JOINT = ("table", "key", "value", "member", "where")


class ActionReader:
    """Reads the action templates of one domain."""

    def __init__(self, findings: Findings, vocabularies: Mapping[str, Vocabulary], schemas: SchemaReader) -> None:
        self._findings = findings
        self._vocabularies = vocabularies
        self._schemas = schemas

    def actions(self, top: Section) -> tuple[ActionTemplate, ...]:
        """All templates that could be read."""
        nodes = top.items("actions", MAX_ACTIONS)
        if "actions" in top and not nodes:
            top.error("actions is empty", "Name at least one command.", top.get("actions"))
        found = [self._action(node) for node in nodes]
        return tuple(action for action in found if action is not None)

    def _action(self, node: Node) -> ActionTemplate | None:
        section = Section(node, self._findings, "an action", _ACTION)
        section.need("template", 'Write the command, for instance `template: "Ship {item} {shelf}"`.')
        template = section.text("template", at_most=500)
        arguments = {
            name: self._argument(name, below) for name, below in section.mapping("arguments", MAX_ARGUMENTS).items()
        }
        joint = [self._joint(below) for below in section.items("joint", MAX_JOINT)]
        effect, description = self._effect(section), section.text("description")
        known = {name: argument for name, argument in arguments.items() if argument is not None}
        entries = tuple(entry for entry in joint if entry is not None)
        if not template or len(known) < len(arguments) or len(entries) < len(joint):
            return None
        return ActionTemplate(template, known, entries, effect, description)

    def _argument(self, name: str, node: Node) -> Argument | None:
        section = self._schemas.scalar(node, f"argument {name}", _ARGUMENT)
        section.text("description")
        kind: ScalarType | None
        if "vocabulary" in section:
            for word in ("type", *STRING, "anyOf"):
                if word in section:
                    section.error(f"{word} stands beside vocabulary", "Remove one of them.", section.get(word))
            kind = vocabulary_id(section, "vocabulary", self._vocabularies)
        elif "type" in section or "anyOf" in section:
            kind = scalar_type(section, self._vocabularies)
        else:
            kind = None
            section.error(f"argument {name} has no type", "Write `vocabulary: NAME`, or `type: string` with a bound.")
        at = section.get("from")
        source: Source | None = None if at is None else read_source(at, self._findings)
        return None if kind is None or (at is not None and source is None) else Argument(kind, source)

    def _joint(self, node: Node) -> Entry | None:
        section = Section(node, self._findings, "a joint binding", _JOINT)
        words = {}
        for word in ("table", "key", "value"):
            section.need(word)
            words[word] = section.text(word)
        where = read_where(section)
        return Entry(**words, member=section.text("member"), where=where) if all(words.values()) else None

    def _effect(self, section: Section) -> object:
        node = section.get("effect")
        if node is None:
            return None
        if not isinstance(node.value, Mapping):
            section.error(f"effect must be a patch, this is {node.kind}", "Write a mapping of fields.", node)
            return None
        return plain(node)
