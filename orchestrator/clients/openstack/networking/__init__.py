"""Services whose objects are addressed by their collection.

object_collections.py  the calls that all collections have
load_balancing.py      octavia
network.py             neutron; network_agents.py: its agents and quotas
"""
