"""Small domain files for the tests: a valid one, changed at one place."""

from __future__ import annotations

from skillstate_local.domains.base import Domain
from skillstate_local.domains.findings import Finding, Severity
from skillstate_local.domains.loader import read_domain

BASE = """\
name: shop
vocabularies:
  part: {pattern: "p[0-9]{1,3}"}
  bin: {members: [b1, b2, b3]}
state:
  type: object
  required: [stock, open]
  properties:
    stock:
      type: object
      x-keys: part
      x-max-entries: 20
      additionalProperties: {type: integer, minimum: 0, maximum: 99}
    open: {type: boolean}
observations:
  events:
    - {name: came, pattern: 'Part (?P<part>p[0-9]{1,3}) came\\.'}
actions:
  - template: "take {part} {bin}"
    arguments:
      part: {vocabulary: part, from: {seen: part}}
      bin: {vocabulary: bin}
    effect: {stock: {"{part}": 1}}
  - template: wait
instructions: Keep the shop.
initial_state: {stock: {}, open: true}
examples:
  - {state: {stock: {}, open: true}, observation: Part p1 came., patch: {stock: {p1: 1}}, action: take p1 b1}
"""


def changed(old: str, new: str) -> str:
    """BASE with one passage replaced; the passage must be there."""
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


def errors_of(text: str) -> list[Finding]:
    """The errors of a domain text."""
    return [finding for finding in read_domain(text).findings if finding.severity is Severity.ERROR]


def domain_of(text: str) -> Domain:
    """The domain of a text without errors."""
    loaded = read_domain(text)
    assert loaded.domain is not None, loaded.findings
    return loaded.domain


def with_field(schema: str, value: str = "") -> str:
    """BASE with one more optional field ``extra`` at the root, and a value for it in the initial state."""
    text = changed("    open: {type: boolean}", f"    open: {{type: boolean}}\n    extra: {schema}")
    return text.replace("initial_state: {stock: {}, open: true", f"initial_state: {{stock: {{}}, open: true{value}")
