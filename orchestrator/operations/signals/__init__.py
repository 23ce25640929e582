"""Signals: acceptance, processing, and scaling of groups.

`scale_group.py` resizes a group after a signal to its policy; `resources/groups/capacity.py` computes the new
size.
"""
