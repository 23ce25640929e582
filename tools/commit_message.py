"""Check a commit message: `area: imperative summary` of at most 72 characters, a blank line, the body."""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUMMARY = re.compile(r"(Revert |Merge |[a-z0-9][a-z0-9_./, -]*: )\S")
MAX_CHARACTERS = 72


def faults(message: str) -> list[str]:
    """Return the faults of a commit message, in order."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    if not lines or not lines[0].strip():
        return ["the summary line is empty"]
    found = []
    if len(lines[0]) > MAX_CHARACTERS:
        found.append(f"the summary has {len(lines[0])} characters; the maximum is {MAX_CHARACTERS}")
    if not SUMMARY.match(lines[0]):
        found.append("the summary is not of the form `area: imperative summary`")
    if len(lines) > 1 and lines[1].strip():
        found.append("the second line is not blank")
    return found


def main() -> int:
    found = faults(Path(sys.argv[1]).read_text())
    for fault in found:
        sys.stderr.write(f"commit message: {fault}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
