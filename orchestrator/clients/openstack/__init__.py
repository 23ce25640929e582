"""OpenStack's services, as a credential in a region. Start with `cloud.OpenStack`.

Only this package imports openstacksdk (the extra `openstack`), which finds the endpoints and reads their
versions. The answers are the JSON objects of the services.

cloud.py          `OpenStack`: the services of a credential, and their endpoints
service_api.py    `ServiceApi`: requests with a deadline, pages of lists
object_collections.py  `Collection`: the calls that are the same for the objects of all services
finding.py        objects by name or id
transport.py      `Transport`: a request and its answer; tests have their own
session/          the transport of real clouds: tokens, endpoints, connections, budgets
adr/              why observations share lists, and requests have budgets
errors.py         answers and failures as the errors of `orchestrator/errors.py`
compute.py        nova
block_storage.py  cinder
networking/       neutron, octavia
image.py          glance
identity.py       keystone
platform_services/  aodh, swift, barbican, designate, mistral
"""
