"""A stack orchestrator: a template becomes a graph, the graph becomes rows, a message visits a row.

Read `operations/reconcile/check.py` and `operations/reconcile/batch.py` first: a worker's visit to a node.
Everything else serves that visit.
"""

__version__ = "0.1.0"
