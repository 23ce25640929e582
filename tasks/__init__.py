"""Celery integration: `check` visits nodes, `signal` processes signals, `periodic` sweeps, `publisher`
enqueues.

No rules of the engine are here: tasks call `orchestrator/operations/`, and `app.py` has all wiring. Start a
worker by hand with `celery -A tasks.app worker -Q check,provider,observe,bulk`.
"""

from orchestrator.start_up import prepare_imports

prepare_imports()
