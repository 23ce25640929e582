"""Statements of the sweep, the stall audit, the purge and the gauges."""
