"""Networks, subnets, their pools, and ports."""
