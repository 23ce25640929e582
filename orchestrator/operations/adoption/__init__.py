"""Export, abandon and adopt."""
