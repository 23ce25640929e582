"""Parts of the plugin API: the values of the verbs, and the optional verbs. `base.py` exports all names."""
