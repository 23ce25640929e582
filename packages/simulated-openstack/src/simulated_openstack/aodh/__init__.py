"""Simulated Aodh: alarms that are stored and never evaluated. Written from the published API."""
