"""Simulated Mistral: workflows whose executions do nothing. Written from the published API."""
