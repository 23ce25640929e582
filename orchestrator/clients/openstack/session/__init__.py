"""The transport of real clouds: requests with a session of keystoneauth1. Start with `session_transport.py`.

session_transport.py  sends a request and reads the answer, until the deadline
tokens.py             the token of a session
endpoints.py          URLs and microversions of the services
single_flight.py      a value that one thread fetches for all
budget.py             simultaneous requests to a service, and their order
concurrency_limit.py  the size of a budget
shared_lists.py       observations of many objects by a list
measurement.py        durations and outcomes
"""
