"""Code that workers of a test import at their start."""
