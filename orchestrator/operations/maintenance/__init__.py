"""Background work: sweep, orphans, purge, heartbeats, key rotation.

`sweep.py` runs the jobs of `jobs.py` in its turn. A new capability declares a `MaintenanceJob`
(`operations/runtime/maintenance_job.py`) and adds it to `jobs.py`.
"""
