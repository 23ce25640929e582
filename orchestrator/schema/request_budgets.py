"""The rest of the budgets of this thread's request. Values, patterns and parts of responses are evaluated at
many places, so that the budgets belong to the thread.
"""

from __future__ import annotations

import threading


class RequestBudgets(threading.local):
    """The rest of each budget; None: not limited."""

    function_seconds: float | None = None
    pattern_steps: float | None = None
    response_bytes: int | None = None
    response_name = ""  # in errors about the size of the response


budgets = RequestBudgets()
