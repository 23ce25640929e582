"""Resource types of Aodh: `alarm_type.py` has the common verbs, `alarm_properties.py` common properties."""
