"""The types that come with the orchestrator, one file each (docs/internals/resource-types.md §A).

`none.py` is the shortest.
"""
