"""A stack orchestrator: text becomes a graph, the graph becomes rows, one message visits one row.

Read `operations/reconcile/check.py` and `reconcile/batch.py` first: they are one worker's visit to one node, and
everything else serves it.
"""

__version__ = "0.1.0"
