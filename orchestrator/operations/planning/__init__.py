"""Turns a started traversal into graph rows.

* `planner.py`, `process.py`: plan a traversal, in place or in a separate process
* `template_plan.py`, `small_plans.py`, `group_subset.py`: compare the rows with the template
* `traversal_plan.py`: the order of the visits: updates after their requirements, deletes after the deletes of
  their dependents (`plan_of_changes`); `graph/layout.py` adds joins and the order of writing
* `row_writer.py`: writes the plan
"""
