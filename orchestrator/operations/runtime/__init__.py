"""State that a worker process keeps between checks: caches, lease renewal, the dispatch window.

`dispatch_window.py` only counts; `operations/reconcile/outcome_writer.py` and the sweep refill the window.
"""
