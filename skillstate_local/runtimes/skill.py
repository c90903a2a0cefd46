"""A skill: P, the immutable part of every prompt, and its hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skill:
    """P = instructions (the same bytes for every runtime) followed by the contract and examples of one runtime."""

    instructions: str
    contract: str

    @property
    def text(self) -> str:
        """P."""
        return f"{self.instructions}\n\n{self.contract}"

    @property
    def hash(self) -> str:
        """SHA-256 (16 hex digits) of P."""
        return short_hash(self.text)

    @property
    def instructions_hash(self) -> str:
        """SHA-256 (16 hex digits) of the instructions alone."""
        return short_hash(self.instructions)


def short_hash(text: str) -> str:
    """The first 16 hex digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
