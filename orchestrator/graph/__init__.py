"""Who waits for whom: pure, over integers. It knows nothing of templates, tables or messages.

`model.py` has the graph, `build.py` makes it from names and finds cycles, `layout.py` turns it into the nodes
a traversal owes, with joins where many meet. Read `model.py` first.
"""
