"""Print the differences between our schemas and Heat's that have no explanation: `make schema-parity`.

    python -m qa.schema_parity           the differences without an explanation, and stale explanations
    python -m qa.schema_parity --all     all differences

Exits with 1 if a difference has no explanation or an explanation no difference.
"""

from __future__ import annotations

import sys
from collections import Counter

from qa.schema_parity.comparison import stale, unexplained
from qa.schema_parity.recorded import compared


def main(arguments: list[str]) -> int:
    """Print the differences; return the exit status."""
    found, explained, counts = compared()
    wrong, old = unexplained(found, explained), stale(found, explained)
    shown = found if "--all" in arguments else wrong
    for difference in shown:
        reasons = [given.reason for given in explained if given.covers(difference)]
        print(f"{difference}" + (f" ({reasons[0]})" if reasons else ""))
    for explanation in old:
        print(f"{explanation.type}: {explanation.kind} {explanation.path}: explained, but does not exist")
    print(f"{counts.types} types, {counts.properties} properties and {counts.attributes} attributes compared")
    print(f"{len(found)} differences: {dict(Counter(difference.kind for difference in found).most_common())}")
    print(f"{len(wrong)} without an explanation, {len(old)} stale explanations")
    return 1 if wrong or old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
