"""Rows of the continuous observation (operations/adr/0017).

* `groups.py`: groups, their leases and rounds
* `watched.py`: the resources that a round observes
* `verdicts.py`: verdicts and their history
"""
