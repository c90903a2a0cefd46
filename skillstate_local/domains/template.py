"""The commented file that a new domain starts from."""

from __future__ import annotations

from pathlib import Path

from skillstate_local.domains.loader.load import is_name
from skillstate_local.errors import UsageError

_FILE = Path(__file__).with_name("template.yaml")


def new_domain_text(name: str) -> str:
    """A starting file for the domain ``name``; it passes `domain check` as it is. Raises UsageError for a bad name."""
    if not is_name(name):
        hint = "Use lower-case letters, digits and hyphens, beginning with a letter, as in my-domain."
        raise UsageError(f"{name[:80]!r} cannot name a domain.", hint)
    return _FILE.read_text(encoding="utf-8").replace("name: NAME", f"name: {name}", 1)
