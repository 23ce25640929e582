"""What the engine thinks, without doing anything: no I/O, no framework, no clock but what it is given.

`states.py` has every state and move; `decide.py` turns a `Visit` into a step, `outcome.py` judges what was
seen after it.
"""
