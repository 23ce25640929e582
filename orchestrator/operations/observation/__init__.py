"""Observation of resources beside the operations of their stack (operations/adr/0009).

* `observation_pass.py`: start a pass, and select the next resources
* `observe.py`: observe a single resource; a Celery task
"""
