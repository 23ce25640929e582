"""Resource types of Neutron, one per module. Start with `base.NeutronType`.

base.py             verbs that follow from declarations
relation.py         verbs of connections between objects
networks/           networks, subnets, pools, ports, trunks
routers/            routers, interfaces, routes, floating IPs
policies/           security groups, QoS, metering, access of other projects, quotas
"""
