"""Celery in, messages out, no rules: `check` visits nodes, `tick` finds lost or overdue work, `dispatch`
enqueues.

All wiring is in `app.py`; what a task does is in `orchestrator/operations/reconcile/check.py`. Run by hand:
`celery -A tasks.app worker -Q check,provider,observe,bulk`.
"""
