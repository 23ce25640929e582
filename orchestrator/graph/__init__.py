"""Dependency graphs over integers. Pure: no templates, tables or messages.

`build.py` has the graph, builds it from names and finds cycles; `layout.py` turns it into the nodes of a
traversal, with joins for wide fan-in and fan-out. Read `build.py` first.
"""
