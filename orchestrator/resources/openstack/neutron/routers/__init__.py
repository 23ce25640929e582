"""Routers, their connections and routes, and floating IPs."""
