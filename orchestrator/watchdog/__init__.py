"""The end of processes whose interpreter hangs.

Code that never releases the interpreter lock stops every thread of its process: leases are not renewed,
health checks have no answer, and no signal is handled. Such a process cannot end itself. `watch.py` starts
its monitor, a small process (`monitor.py`, standard library only), which ends it; the supervisor of the
process (`orchestrator up`, gunicorn, Docker) starts another. Read `watch.py` first, and
`operations/adr/0028-hung-processes-are-ended.md` for the reasons.
"""
