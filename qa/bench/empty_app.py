"""The application of the yardstick: an empty task with the default settings of Celery and kombu.

Two settings differ: late acknowledgement, as for any task that must not be lost, and no results, because no
client reads them.
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
