"""Services of networks.

load_balancing.py      octavia
network.py             neutron; network_agents.py: its agents and quotas
"""
