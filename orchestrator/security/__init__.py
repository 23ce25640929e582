"""Who is calling and what they may do, tokens, and encryption at rest. Every query below is scoped by what
this says.

Read `caller.py` first.
"""
