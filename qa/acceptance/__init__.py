"""Stacks on a cloud: the orchestrator runs as a server, its stacks are operated over HTTP.

installation.py  `orchestrator up` on the real or the simulated cloud, and a client of its API
inventory.py     the objects of the cloud, for comparisons before and after
guests.py        the signals of servers and agents that do not exist here
parameters.py    values of the parameters of templates
load_balancer.py `python -m qa.acceptance.load_balancer`: an example with Octavia
changes.py       a template with a changed property
faults.py        `python -m qa.acceptance.faults`: faults during the changes of a stack of ten
fault_table.py   the faults; disturbances.py, preparations.py and mortal/ carry them out
templates.py     `python -m qa.acceptance.templates`: a collection of templates
"""
