"""Is a domain consistent? The questions that its parts alone answer, for YAML and Python authoring alike.

Findings point into the layout of a domain file. Later stages run only when the earlier ones found no error.
"""

from __future__ import annotations

import contextlib

from skillstate_local.domains.base import Domain
from skillstate_local.domains.check.actions import check_actions
from skillstate_local.domains.check.examples import check_examples
from skillstate_local.domains.check.observations import check_observations
from skillstate_local.domains.check.state import check_state
from skillstate_local.domains.findings import Finding, Findings, Stop


def check_domain(domain: Domain) -> list[Finding]:
    """Everything that is wrong with a domain; empty when it is consistent."""
    findings = Findings()
    with contextlib.suppress(Stop):
        domain_findings(domain, findings)
    return list(findings)


def domain_findings(domain: Domain, findings: Findings) -> None:
    """Check a domain into ``findings``. Raises Stop at a limit."""
    for stage in ((check_state,), (check_observations, check_actions), (check_examples,)):
        for check in stage:
            check(domain, findings)
        if findings.failed:
            return
