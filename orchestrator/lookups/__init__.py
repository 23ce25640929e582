"""Look-ups of a cloud's objects by name or id, for custom constraints and `Resolve` rules.

A look-up has the name of the custom constraint (`nova.flavor`) and returns the object's id. It never changes
anything. Start with `kinds.py`.

kinds.py    the look-ups, Heat's and those of plugins, and their faults
cache.py    recent results of a project in a region; simultaneous equal look-ups are shared
request.py  the look-ups of an API request: noted during validation, then answered together
finder.py   names in a resource's properties become ids, in a worker or a preview
"""
