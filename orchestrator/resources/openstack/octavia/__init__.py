"""Resource types of Octavia, one per module. Start with `base.OctaviaType`.

base.py           verbs that follow from declarations
profiles.py       flavors, availability zones and their profiles
parts.py          load balancers and their parts: provisioning status, request tokens
"""
