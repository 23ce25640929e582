"""Text becomes a definition: parsing, the template language, parameters and environments.

Pure: no database, no network, no clock. Never looks at resource types (`engine.validate` does) and never
looks for cycles (`graph` does). Read `template.py` first: `load` is the way in; then `definition.py`, the
only thing functions see.
"""
