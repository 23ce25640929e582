"""Simulated Designate: zones and record sets. Written from the published API."""
