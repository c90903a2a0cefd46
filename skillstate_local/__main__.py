"""``python -m skillstate_local`` and the console script."""

from __future__ import annotations

import sys

from skillstate_local.cli import main

if __name__ == "__main__":
    sys.exit(main())
