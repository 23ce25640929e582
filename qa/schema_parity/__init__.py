"""The schemas of our resource types against those of Heat 27.0.1: `make schema-parity`.

`heat-27.0.1.json` has Heat's facts, `explained.json` the reasons of the differences. Start with
`comparison.py`.
"""
