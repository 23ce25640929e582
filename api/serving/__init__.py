"""Gunicorn: the worker class and its logging."""
