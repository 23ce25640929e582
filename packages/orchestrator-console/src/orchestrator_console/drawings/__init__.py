"""Drawings of map and timeline: places, and texts that fit. Pure."""
