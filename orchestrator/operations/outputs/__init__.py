"""Stack outputs and nested metadata, evaluated at read time."""
