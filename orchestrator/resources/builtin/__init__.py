"""Built-in types, one per module (docs/internals/resource-types.md §A).

`none.py` is the shortest.
"""
