"""Forecast of an update."""
