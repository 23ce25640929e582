"""Resource types of cinder, a module per type."""
