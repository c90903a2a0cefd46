"""Bounds on what an author may write. They hold before anything is compiled, so that no file can stall the process."""

from __future__ import annotations

MAX_FILE_BYTES = 256 * 1024
MAX_NESTING = 32
MAX_NODES = 50_000

MAX_VOCABULARIES = 64
MAX_MEMBERS = 10_000
MAX_WORD_CHARS = 200
MAX_GRAMMAR_WORDS = 100_000
"""Words of closed vocabularies and enumerations, counted once for each field or argument that uses them."""

MAX_FIELDS = 300
MAX_NAME_CHARS = 100
MAX_LIST_ITEMS = 10_000
MAX_ENTRIES = 100_000
MAX_CHANGES = 63
"""Changes of one table or list in one patch; the Lark dialect counts them in the bits of one parameter."""
MAX_SCALE = 12
MAX_INTEGER = 10**18

MAX_PATTERN_CHARS = 500
MAX_PATTERN_GROUPS = 40
MAX_PATTERN_LENGTH = 10_000
"""Characters of the longest text that a pattern of the state may match."""
MAX_PATTERN_CHOICES = 1_000_000
"""Ways in which a backtracking matcher may try to read one text."""

MAX_ACTIONS = 64
MAX_ARGUMENTS = 8
MAX_JOINT = 4
MAX_JOINT_PAIRS = 300_000
MAX_EVENTS = 64
MAX_EXAMPLES = 32
MAX_PROSE_CHARS = 50_000
MAX_FINDINGS = 100
