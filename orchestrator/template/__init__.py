"""Templates: parsing, the template language, parameters and environments.

Pure: no database, no network, no clock. Resource types are unknown here (see `engine/validation`), and cycles
are detected by `graph`. Read `template.py` first: `read` is the entry point; then `definition.py`, the
interface of functions.
"""
