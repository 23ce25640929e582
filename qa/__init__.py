"""Programs that measure and verify the product, started by a target of the Makefile or by a person.

acceptance       changes, faults and outages on an OpenStack control plane (`python -m qa.acceptance.faults`)
bench            speed of stack operations (`make bench`, `make bench-bars`)
compose          the image and docker-compose.yml on a Docker engine (`make test-compose`)
conformance      Heat's own tests (`make conformance`)
console_bench    speed of the console in Chromium (`make bench-ui`)
corpus           results for real templates, compared with Heat's (`make corpus`)
fuzz             generated requests for every API operation (`tests/integration/api/test_fuzz.py`)
openstack_bench  speed with OpenStack (`make bench-openstack`)
schema_parity    schemas of all types, compared with Heat's (`make schema-parity`)
soak             random requests, kills and outages (`make soak`)
"""
