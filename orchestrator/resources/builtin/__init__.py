"""The types that come with the orchestrator, one file each (spec/resource-types.md A).

`none.py` is the shortest.
"""
