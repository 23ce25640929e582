"""Simulated Barbican: secrets, orders and containers. Written from the published API."""
