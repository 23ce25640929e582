"""Octavia: load balancers and their parts, flavors, availability zones, quotas."""
