"""`domain show`: P exactly as the model sees it."""

from __future__ import annotations

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.runtimes.skill import Skill
from skillstate_local.runtimes.skill_state import SkillStateRuntime


def show_domain(domain: Domain, level: Level, order: Order, reasoning_tokens: int) -> Skill:
    """The skill of the skill-state runtime; its ``text`` is P."""
    return SkillStateRuntime(domain, level, order, reasoning_tokens).skill
