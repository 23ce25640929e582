"""The pure decisions of the engine: no I/O, no framework, no clock except explicit arguments.

`states.py` defines every state and transition; `check/decide.py` turns a `ResourceVisit` into a step, and
`check/outcome.py` turns the observation after it into an outcome. `plan_changes.py` compares
rows with definitions and selects the visits and deletes of a traversal.
"""
