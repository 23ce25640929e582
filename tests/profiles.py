"""How many examples Hypothesis tries: all in `make test`, few in `make test-fast` (TEST_PROFILE=fast)."""

from __future__ import annotations

import os
from typing import Final

FAST_EXAMPLES: Final = 25


def examples(number: int) -> int:
    """Return `number`, or at most `FAST_EXAMPLES` in the fast profile."""
    return min(number, FAST_EXAMPLES) if os.environ.get("TEST_PROFILE") == "fast" else number
