"""Simulated Swift: containers and objects of a few bytes. Written from the published API."""
