"""Observation of resources beside the operations of their stack.

On request (operations/adr/0009):

* `observation_pass.py`: start a pass, and select the next resources
* `observe.py`: observe a single resource; a Celery task

Continuously (operations/adr/0017):

* `rounds.py`: a round of a group; a Celery task
* `list_round.py`, `single_round.py`: the resources of services with lists, and those without
* `findings.py`: the contexts of all observations, and the results of a round
* `notified.py`: objects that notifications name
"""
