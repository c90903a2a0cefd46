"""The ladder on a real model: which failures each level still lets through. Ends with 1 if a promise is broken.

    python bench/ladder.py [--model gemma-3-270m] [--seeds 1-20] [--horizon 10] [--levels schema,delta,effects]

The promises are those of the levels: from `schema` up no truncated, syntax, type or malformed answer, at `delta` and
`effects` no overwrite or deletion and no illegal action either, on first attempts and final ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from machine import describe

NEVER = {
    "schema": ("truncated", "syntax", "type", "malformed action"),
    "delta": ("truncated", "syntax", "overwrite/deletion", "type", "malformed action", "illegal"),
    "effects": ("truncated", "syntax", "overwrite/deletion", "type", "malformed action", "illegal"),
}


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Run (or go on with) the comparison; its progress shows on stderr."""
    command = [sys.executable, "-m", "skillstate_local", "compare", "--json", "--env", "warehouse"]
    for flag in ("model", "seeds", "horizon", "levels", "prefill", "temperature"):
        command += [f"--{flag}", str(getattr(options, flag))]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise SystemExit(done.stdout or f"compare ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="gemma-3-270m")
    parser.add_argument("--seeds", default="1-20")
    parser.add_argument("--horizon", type=int, default=10)
    parser.add_argument("--levels", default="schema,delta,effects")
    parser.add_argument("--prefill", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=0.0)
    options = parser.parse_args()
    facts = f"seeds {options.seeds}, T = {options.horizon}, temperature {options.temperature:g}"
    print(f"{describe()}; model {options.model}, {facts}\n", flush=True)
    found = compare(options)
    broken = []
    for row in found["summary"]["results"]["conditions"].values():
        level = row["level"]
        if row["kind"] != "model" or level not in NEVER:
            continue
        for outcome in ("first", "final"):
            classes = row[outcome]["counts"]
            print(f"{level}, {outcome} attempts: {', '.join(f'{n} {name}' for name, n in classes.items() if n)}")
            broken += [f"{level}: {classes[name]} {name}" for name in NEVER[level] if classes.get(name, 0)]
    print("\n" + ("BROKEN: " + "; ".join(broken) if broken else "Every promise held."))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
