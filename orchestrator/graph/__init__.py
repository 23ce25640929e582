"""Dependency graphs over integers. Pure: no templates, tables or messages.

`model.py` has the graph, `build.py` builds it from names and finds cycles, `layout.py` turns it into the
nodes of a traversal, with joins for wide fan-in and fan-out. Read `model.py` first.
"""
