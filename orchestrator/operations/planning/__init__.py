"""Turns a started traversal into graph rows."""
