"""Read models.yaml strictly: every mistake names file, line and JSON pointer."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from skillstate_local.errors import UsageError, unknown_name
from skillstate_local.registry.resources import resource
from skillstate_local.registry.schema import KEYS, Model, ModelSpec, is_model_name

FILE_NAME = "models.yaml"


@dataclass(frozen=True, slots=True)
class Registry:
    """Known models by name, in file order."""

    models: Mapping[str, Model]

    def get(self, name: str) -> Model:
        """The model called ``name``. Raises UsageError, with the nearest match, if there is none."""
        if name not in self.models:
            raise unknown_name("model", name, self.models)
        return self.models[name]

    def __iter__(self) -> Iterator[Model]:
        return iter(self.models.values())

    def __len__(self) -> int:
        return len(self.models)


def load_registry(cwd: Path | None = None) -> Registry:
    """The bundled models, then those of ``cwd``/models.yaml over them by whole entry.

    Raises UsageError naming file, line and JSON pointer of the first mistakes found in a file.
    """
    bundled = resource(FILE_NAME)
    models = read_models(bundled)
    own = (cwd or Path.cwd()) / FILE_NAME
    if own.is_file() and not own.samefile(bundled):
        models |= read_models(own)
    return Registry(models)


def read_models(file: Path) -> dict[str, Model]:
    """The entries of one file. Raises UsageError as `load_registry` does."""
    root = _compose(file)
    if root is None:
        return {}
    _refuse_duplicates(file, root)
    data = yaml.SafeLoader("").construct_document(root)
    if not isinstance(data, dict):
        raise UsageError(f"{file}:1: models.yaml must be a mapping of names to entries.", "Start with `my-model:`.")
    return {name: _model(file, root, name, value) for name, value in data.items()}


def _compose(file: Path) -> yaml.Node | None:
    try:
        return yaml.compose(file.read_text(encoding="utf-8"), yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}", "Check that it is a readable UTF-8 file.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise UsageError(f"{file}{line}: not valid YAML: {problem}.", "Check indentation and quotes there.") from None


def _refuse_duplicates(file: Path, root: yaml.Node) -> None:
    """Raise UsageError if a mapping names a key twice; YAML would silently keep the last."""
    pending, seen_nodes = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        if isinstance(node, yaml.MappingNode):
            first_lines: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if str(key.value) in first_lines:
                    where = f"first on line {first_lines[str(key.value)]}"
                    raise UsageError(f"{file}:{line}: key {key.value!r} is given twice ({where}).", "Remove one.")
                first_lines[str(key.value)] = line
                pending.append(value)


def _model(file: Path, root: yaml.Node, name: Any, value: Any) -> Model:
    if not is_model_name(name):
        line, _ = _locate(root, (name,))
        raise UsageError(
            f"{file}:{line}: {name!r} is not a model name.",
            "Use `name` or `owner/name` of letters, digits and . _ - (no `--`, no `..`).",
        )
    try:
        spec = ModelSpec.model_validate(value)
    except ValidationError as error:
        raise _usage_error(file, root, name, error) from None
    fields = {field: getattr(spec, field) for field in ModelSpec.model_fields}
    return Model.model_construct(**fields, name=name, file=file.absolute())


def _usage_error(file: Path, root: yaml.Node, name: str, error: ValidationError) -> UsageError:
    """All mistakes of one entry, unknown keys first, each with its place."""
    lines, hint = [], ""
    details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
    for detail in details:
        line, depth = _locate(root, (name, *detail["loc"]))
        loc = detail["loc"]
        what = _problem(str(detail["type"]), loc, str(detail["msg"]))
        if detail["type"] not in ("extra_forbidden", "missing"):
            loc = loc[: depth - 1]
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in (name, *loc))
        lines.append(f"{file}:{line}: {what} (at {pointer})")
        hint = hint or _key_hint(str(detail["type"]), loc)
    return UsageError("\n".join(lines), hint or "Compare with the entries that `models list` shows.")


def _problem(kind: str, loc: tuple[int | str, ...], message: str) -> str:
    if kind == "extra_forbidden":
        return f"unknown key {loc[-1]!r}"
    if kind == "missing":
        return f"key {loc[-1]!r} is missing"
    return message.removeprefix("Value error, ")


def _key_hint(kind: str, loc: tuple[int | str, ...]) -> str:
    """Nearest known key for an unknown one, and the list of those allowed there."""
    known = KEYS.get(tuple(str(part) for part in loc[:-1]), ())
    if kind != "extra_forbidden" or not known:
        return ""
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.4)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return f"{guess}Known here: {', '.join(known)}."


def _locate(root: yaml.Node, loc: tuple[Any, ...]) -> tuple[int, int]:
    """Line (from 1) of the deepest node on the way to ``loc``, and how many parts of ``loc`` exist."""
    node, line = root, root.start_mark.line
    for depth, part in enumerate(loc):
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is None:
                return line + 1, depth
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line
        else:
            return line + 1, depth
    return line + 1, len(loc)
