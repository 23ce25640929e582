"""Acme's additions to the template language: functions, constraints and a format."""
