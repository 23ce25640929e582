"""Pictures: views of a stack that are bounded by the screen, for stacks of any size.

`field.py` has a byte per resource, `levels.py` the order of a field. Pure. Read `field.py` first.
"""
