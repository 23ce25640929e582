"""AWS::ElasticLoadBalancing::LoadBalancer, on Octavia. Start with `load_balancer.py`.

properties.py  its properties and attributes
parts.py       listeners, pools, health monitors and members, compared with the template
"""
