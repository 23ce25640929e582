"""A visit to a node: decide its step, compare, judge the outcome.

* `visit.py`: the input of a visit; whether its traversal was superseded or halted (by a cancel or a failure)
* `decide.py`: the step of a visit; a visit of a superseded or halted traversal starts nothing
* `change.py`: whether an existing resource is kept, updated or replaced; `property_diff.py` compares
* `outcome.py`: the result of an observation or error: ready, wait, retry within the limit, or fail
* `hooks.py`, `child_status.py`: pauses at hooks; the status of a child stack
"""
