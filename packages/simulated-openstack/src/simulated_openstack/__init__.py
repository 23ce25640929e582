"""A simulated OpenStack: Keystone, Neutron, Nova, Cinder, Glance and further services in a process, without
any servers behind them.

For laptops and for tests: `simulated-openstack serve`. It answers with the statuses, objects and errors of
the real services; `tests/parity/` compares those of the first six with recorded answers. Objects change their
states after configurable delays. Nothing is ever started, connected or stored. It listens on loopback only,
and says `simulated` in its version documents and in the header `Server`.

Read first: `cloud.py` (a request's way), `state.py` (the objects), `service.py` (a service and its routes). A
module per family of objects is in the folder of its service.
"""
