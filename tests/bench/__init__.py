"""The table of speeds: `make bench`, `make bench-bars` (DESIGN.md "Speed"). Read `__main__.py` first.

Everything runs on servers of its own, in a folder that is gone afterwards. Stacks of known shapes
(`shapes.py`) are made over HTTP (`measure.py`), and before and after each the empty Celery task (`yardstick.py`),
which they are compared with; `bars.py` holds the figures against what we promise. Nothing here reaches into the engine: it is measured as a client
sees it, and through /proc and the database's own counters. Only reading a large template is measured apart
(`parse.py`), without servers.
"""
