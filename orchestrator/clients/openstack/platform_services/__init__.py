"""Services above the infrastructure: alarms, objects, secrets, DNS, workflows. Written from their published
API.

alarming.py       aodh
object_store.py   swift
key_manager.py    barbican
dns.py            designate
workflow.py       mistral
"""
