"""Checks: each message visits a node. Read `check.py` first.

* `check.py`, `batch.py`: claim and visit nodes, skip superseded and halted traversals, end a traversal
* `resource_visits.py`: a visit to a resource: its retries left, its step, its outcome
* `execution.py`: calls of the resource type, and the abort of an operation in a cancelled or failed stack
* `*_steps.py`, `comparison.py`, `desired_state.py`: the steps, and the values that they compare
* `step_outcomes.py`, `outcome_rows.py`, `outcome_writer.py`: the outcome, its row, its statement, the
  release of dependents, and the refill of the dispatch window
* `nested/`: the steps of a resource that is a nested stack
"""
