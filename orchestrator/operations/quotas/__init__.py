"""Limits per project.

`limits.py` has the limits: from the settings, unless the operator has set others for a project. `room.py`
has what is counted, and `require_room`, the one check before something is added. The transaction that adds
checks again, under the lock of its project (`store/access/quotas.py`, `enforce`). Rates are counted in
`api/limits/`.
"""
