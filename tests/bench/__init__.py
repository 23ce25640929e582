"""The table of speeds: `make bench`, `make bench-bars` (DESIGN.md "Speed"). Read `__main__.py` first.

Everything runs on servers of its own, in a folder that is gone afterwards. First the yardstick, the empty
Celery task (`yardstick.py`), then stacks of known shapes (`shapes.py`) over HTTP (`measure.py`); `bars.py`
holds the figures against what we promise. Nothing here reaches into the engine: it is measured as a client
sees it, and through /proc and the database's own counters. Only reading a large template is measured apart
(`parse.py`), without servers.
"""
