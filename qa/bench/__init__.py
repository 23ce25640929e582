"""Benchmarks: `make bench`, `make bench-bars` (docs/internals/design.md "Speed"). Read `__main__.py` first.

Everything runs on servers of its own, in a temporary folder. Stacks of known shapes (`shapes.py`) are created
over HTTP (`measure.py`). The empty Celery task, the unit of comparison (`yardstick.py`), is measured before
and after each stack. `bars.py` has the promised figures, and `judging.py` compares the results with them. The
benchmarks never reach into the engine: they measure as a client does, and through /proc and the counters of
the database. Reading a large template (`parse.py`) is measured without servers.
"""
