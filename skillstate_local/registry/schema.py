"""What an entry of models.yaml may say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

EngineName = Literal["transformers", "vllm", "openai"]
ENGINE_NAMES: tuple[str, ...] = get_args(EngineName)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def is_model_name(name: object) -> bool:
    """Whether ``name`` is usable as a model name: ``name`` or ``owner/name``, as on the hub."""
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and "--" not in name and ".." not in name


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    """Keep a mapping of scalars and lists of scalars; raises ValueError for anything deeper."""
    for key, setting in value.items():
        members = setting if isinstance(setting, list) else [setting]
        if not all(member is None or isinstance(member, str | int | float) for member in members):
            raise ValueError(f"setting {key!r} must be a scalar or a list of scalars")
    return value


def _member(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("a wheel member is a relative path without '..'")
    return path


Settings = Annotated[dict[str, Any], AfterValidator(_settings)]
Requirement = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PackageSource(_Strict):
    """Pinned wheels; ``members`` of them, concatenated in order, are one GGUF with this ``sha256``."""

    requirements: list[Requirement] = Field(min_length=1)
    members: list[Annotated[str, AfterValidator(_member)]] = Field(min_length=1)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class HubSource(_Strict):
    """A Hugging Face repository; ``revision`` is a branch, a tag or a commit."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")
    revision: str = Field(default="main", min_length=1)


class Source(_Strict):
    """Exactly one of the three places a model comes from."""

    package: PackageSource | None = None
    hub: HubSource | None = None
    path: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _exactly_one(self) -> Source:
        if sum(part is not None for part in (self.package, self.hub, self.path)) != 1:
            raise ValueError("exactly one of package, hub, path is needed")
        return self

    @property
    def kind(self) -> Literal["package", "hub", "path"]:
        """Which of the three it is."""
        if self.package is not None:
            return "package"
        return "hub" if self.hub is not None else "path"


class Limits(_Strict):
    """``context_tokens`` bounds prompt plus output; ``max_batch`` is how many requests decode together by default."""

    context_tokens: int = Field(ge=16)
    max_batch: int = Field(default=16, ge=1)


class ModelSpec(_Strict):
    """One entry, as written."""

    source: Source
    license: str
    description: str
    parameters: str = Field(pattern=r"^\d+(\.\d+)?[KMBT]$")
    engines: list[EngineName] = Field(min_length=1)
    engine: dict[EngineName, Settings] = Field(default_factory=dict)
    limits: Limits
    template: str = Field(default="auto", min_length=1)
    base: bool = False


class Model(ModelSpec):
    """An entry under its ``name``, and the ``file`` that defines it."""

    name: str
    file: Path

    @property
    def parameter_count(self) -> int:
        """``parameters`` as a number."""
        return round(float(self.parameters[:-1]) * _UNITS[self.parameters[-1]])

    @property
    def path(self) -> Path | None:
        """The folder of a ``path`` source, relative to the file that names it."""
        return None if self.source.path is None else self._beside(self.source.path)

    @property
    def template_path(self) -> Path | None:
        """The Jinja file that ``template`` names, or None for ``auto`` and ``none``."""
        return None if self.template in ("auto", "none") else self._beside(self.template)

    def settings(self, engine: str) -> dict[str, Any]:
        """A copy of the settings for ``engine``; empty if the entry has none."""
        return next((dict(value) for name, value in self.engine.items() if name == engine), {})

    def _beside(self, path: str) -> Path:
        return self.file.parent / Path(path).expanduser()


# Where each model sits inside an entry, so that an unknown key there finds its nearest match.
KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): tuple(ModelSpec.model_fields),
    ("source",): tuple(Source.model_fields),
    ("source", "package"): tuple(PackageSource.model_fields),
    ("source", "hub"): tuple(HubSource.model_fields),
    ("limits",): tuple(Limits.model_fields),
    ("engine",): ENGINE_NAMES,
}
