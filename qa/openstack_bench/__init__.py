"""Benchmarks with OpenStack: `make bench-openstack`. Read `__main__.py` first.

Stacks are created over HTTP as by a client; requests to the cloud are counted by the metrics of the
orchestrator. `plain_script.py` does the same work without an orchestrator.
"""
