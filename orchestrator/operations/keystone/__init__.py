"""Credentials and users of stacks at Keystone, and their removal."""
