"""Decisions of the continuous observation: pure (operations/adr/0017).

* `drift.py`: drift states, what is known about a resource between two rounds
* `judgement.py`: the next verdict, from the recorded properties, an observation and the previous verdict
* `differences.py`: differences between recorded and observed properties
* `rounds.py`: time of the next round, loss of many objects at once
"""
