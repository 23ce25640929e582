"""Local types, and the type of the test plugin."""

from __future__ import annotations

from orchestrator.testing.samples import Sample

SAMPLES = (
    Sample("OS::Heat::TestResource", failing_changes=frozenset({"fail"})),
    Sample("AWS::EC2::VolumeAttachment", {"Device": "/dev/vdb"}, changes={"Device": "/dev/vdc"}),
    Sample("AWS::EC2::InternetGateway", slow_changes=frozenset({"Tags"})),  # not implemented
    Sample("OS::Heat::Value", {"value": {"a": [1]}}, changes={"type": "json"}),
    Sample(
        "OS::Heat::RandomString",
        {"length": 12},
        # Its old name for a class becomes a class.
        changes={"sequence": "octdigits"},
    ),
    Sample(
        "Test::Thing",
        fixtures=("things",),
        failing_changes=frozenset({"error"}),
        slow_changes=frozenset({"silent"}),
    ),
)
