"""The table of speeds: `make bench`, `make bench-bars` (docs/internals/design.md "Speed"). Read `__main__.py`
first.

Everything runs on servers of its own, in a folder that is gone afterwards. Stacks of known shapes
(`shapes.py`) are made over HTTP (`measure.py`); before and after each goes the empty Celery task that it is
compared with (`yardstick.py`); `bars.py` holds the figures against what we promise. Nothing here reaches into
the engine: it is measured as a client sees it, and through /proc and the database's own counters. Only
reading a large template is measured apart (`parse.py`), without servers.
"""
