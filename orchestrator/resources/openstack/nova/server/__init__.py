"""OS::Nova::Server (docs/internals/resource-types.md §C 1). Start with `server_type.py`.

server_type.py      the verbs
declarations.py     properties, attributes, names to resolve
validation.py       rules beyond the schema, implicit requirements
request.py          the request for a new server
devices.py          block devices
user_data.py        user data in its formats, with the files of `guest_files.py`
agent.py            settings of the agent for software deployments
interfaces.py       network interfaces: own ports, changes
state.py            decisions from an observed server: ready, failed, next step
build_times.py      when a server in construction can be ready
steps.py            steps of an update
images.py           images of the server: snapshots
port_release.py         release of ports and addresses for a replacement, and their return
listing.py          observation by lists
live_attributes.py  addresses, consoles
"""
