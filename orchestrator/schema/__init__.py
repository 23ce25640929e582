"""Kinds of values and the rules they obey, shared by template parameters and resource properties.

Never reads a template, knows no resource type and asks no cloud. Read `constraints.py` first, then
`properties.py`.
"""
