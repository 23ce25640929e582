"""The application of the yardstick: one task that does nothing, Celery's and kombu's settings as shipped.

But for two: acks late, as any task must that may not be lost, and no results, since nobody reads them.
"""

from __future__ import annotations

import os

from celery import Celery

VARIABLE = "YARDSTICK_BROKER_URL"

app = Celery("yardstick", broker=os.environ.get(VARIABLE, "memory://"), set_as_current=False)
app.conf.update(task_acks_late=True, task_ignore_result=True)


@app.task(name="empty", shared=False)  # type: ignore[untyped-decorator]
def empty() -> None:
    """Do nothing."""
