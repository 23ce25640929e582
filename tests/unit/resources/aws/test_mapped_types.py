"""Types of CloudFormation that are types of nova, cinder and neutron under other names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.aws.instance import Instance
from orchestrator.resources.aws.security_group import Ec2SecurityGroup
from orchestrator.resources.aws.volume import Ec2Volume, Ec2VolumeAttachment
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.nova.server.server_type import Server
from orchestrator.testing.scripted_cloud import ScriptedCloud

REQUIRED = {"ImageId": "image", "InstanceType": "flavor"}
ACTIVE = {
    "id": "s1",
    "status": "ACTIVE",
    "flavor": {"id": "flavor"},
    "metadata": {"a": "b"},
    "addresses": {"net": [{"addr": "10.0.0.4"}], "other": [{"addr": "10.1.0.4"}], "zero": []},
    "OS-EXT-AZ:availability_zone": "zone",
}


@pytest.fixture
def script():
    return ScriptedCloud()


def context(kind, script, action="CREATE", **given):
    properties, faults = kind.read_properties(given)
    assert faults == []
    return Context(
        name="it",
        physical_name="stack-it-abc",
        token="00000000-1",
        action=action,
        properties=properties,
        cloud=script.cloud,
        project_id="p1",
    )


class TestInstances:
    def test_a_create_reserves_a_place_at_nova(self):
        assert Instance().service == "nova"

    def test_a_lost_delete_is_repeated_as_that_of_a_server(self):
        assert Instance().delete_stalled_seconds == Server().delete_stalled_seconds > 0

    def test_every_property_reaches_nova(self, script):
        kind = Instance()
        ctx = context(
            kind,
            script,
            **REQUIRED,
            KeyName="key",
            AvailabilityZone="zone",
            SecurityGroups=["web"],
            SecurityGroupIds=["g2"],
            Tags=[{"Key": "a", "Value": "b"}],
            NovaSchedulerHints=[
                {"Key": "same_host", "Value": "x"},
                {"Key": "same_host", "Value": "y"},
                {"Key": "group", "Value": "z"},
            ],
            UserData="text",
            BlockDeviceMappings=[{"DeviceName": "vdb", "Ebs": {"SnapshotId": "snap", "VolumeSize": "3"}}],
        )
        script.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
        assert kind.create(ctx, ctx.properties).physical_id == "s1"
        body = script.sent("POST", "/servers")[0].body
        server = body["server"]
        assert (server["imageRef"], server["flavorRef"], server["name"]) == (
            "image",
            "flavor",
            "stack-it-abc",
        )
        assert (server["key_name"], server["availability_zone"]) == ("key", "zone")
        assert server["security_groups"] == [{"name": "web"}, {"name": "g2"}]
        assert server["metadata"] == {"a": "b"}
        assert body["os:scheduler_hints"] == {"same_host": ["x", "y"], "group": "z"}
        assert server["user_data"]
        (device,) = server["block_device_mapping"]
        assert (device["device_name"], device["snapshot_id"]) == ("vdb", "snap")
        assert (str(device["volume_size"]), device["delete_on_termination"]) == ("3", True)

    def test_interfaces_are_ports_in_the_order_of_their_index(self):
        interfaces = [
            {"NetworkInterfaceId": "b", "DeviceIndex": "1"},
            {"NetworkInterfaceId": "a", "DeviceIndex": "0"},
        ]
        mapped = Instance().mapped({"NetworkInterfaces": interfaces, "SubnetId": "ignored"})
        assert mapped["networks"] == [{"port": "a"}, {"port": "b"}]
        assert Instance().mapped({"NetworkInterfaces": ["a", "b"]})["networks"] == mapped["networks"]
        assert Instance().mapped({"SubnetId": "s"})["networks"] == [{"subnet": "s"}]
        assert "networks" not in Instance().mapped({})

    def test_attributes_are_the_first_address_of_the_last_network_and_the_zone(self, script):
        script.answers("GET", "/servers/s1", {"server": ACTIVE})
        kind = Instance()
        observation = kind.observe(context(kind, script, **REQUIRED), "s1")
        assert observation.ready
        assert observation.attributes == {
            **dict.fromkeys(("PublicIp", "PrivateIp", "PublicDnsName", "PrivateDnsName"), "10.1.0.4"),
            "AvailabilityZone": "zone",
        }

    def test_an_instance_without_an_address_has_heats_placeholder(self, script):
        script.answers("GET", "/servers/s1", {"server": {**ACTIVE, "addresses": {}}})
        kind = Instance()
        observation = kind.observe(context(kind, script, **REQUIRED, AvailabilityZone="mine"), "s1")
        assert (observation.attributes["PublicIp"], observation.attributes["AvailabilityZone"]) == (
            "0.0.0.0",
            "mine",
        )

    def test_a_difference_of_flavor_and_tags_is_reported(self, script):
        script.answers("GET", "/servers/s1", {"server": ACTIVE})
        kind = Instance()
        tags = [{"Key": "x", "Value": "y"}]
        observed = kind.observe(context(kind, script, "CHECK", **REQUIRED, Tags=tags), "s1").properties
        assert observed == {"InstanceType": "flavor", "Tags": [{"Key": "a", "Value": "b"}]}

    def test_volumes_are_attached_when_the_instance_is_active(self, script):
        kind, attached = Instance(), []
        volumes = [{"VolumeId": "v1", "Device": "/dev/vdb"}]
        ctx = context(kind, script, **REQUIRED, Volumes=volumes)

        def attach(request):
            attached.append(request.body["volumeAttachment"])
            return {"volumeAttachment": {"id": "v1"}}

        script.answers("GET", "/servers/s1", {"server": {**ACTIVE, "status": "BUILD"}})
        assert not kind.observe(ctx, "s1").ready
        script.answers("GET", "/servers/s1", {"server": ACTIVE})
        listed = lambda _: {"volumeAttachments": [{"id": "v1", "volumeId": "v1"}] if attached else []}  # noqa: E731
        script.answers("GET", r"/servers/s1/os-volume_attachments.*", listed)
        script.answers("POST", "/servers/s1/os-volume_attachments", attach)
        assert kind.observe(ctx, "s1").step == "attach_volumes"
        kind.advance(ctx, "s1", ctx.properties, "attach_volumes")
        kind.advance(ctx, "s1", ctx.properties, "attach_volumes")
        assert attached == [{"volumeId": "v1", "device": "/dev/vdb"}]
        volume = {"id": "v1", "status": "attaching", "attachments": []}
        script.answers("GET", "/volumes/v1", {"volume": volume})
        observation = kind.observe(ctx, "s1")
        assert (observation.ready, observation.step) == (False, "")
        volume = {"id": "v1", "status": "in-use", "attachments": [{"server_id": "s1"}]}
        script.answers("GET", "/volumes/v1", {"volume": volume})
        assert kind.observe(ctx, "s1").ready

    def test_interfaces_and_security_groups_conflict(self):
        (fault,) = Instance().validate({"SecurityGroups": ["a"], "NetworkInterfaces": ["b"]}, 60.0)
        assert fault.message == (
            "Cannot define the following properties at the same time: "
            "SecurityGroups/SecurityGroupIds, NetworkInterfaces."
        )

    @pytest.mark.parametrize(
        ("device", "missing"), [({}, "Ebs"), ({"Ebs": {"VolumeSize": "1"}}, "SnapshotId")]
    )
    def test_block_devices_need_a_snapshot(self, device, missing):
        (fault,) = Instance().validate({"BlockDeviceMappings": [{"DeviceName": "vdb", **device}]}, 60.0)
        assert fault.message == (
            f"{missing} is missing, this is required when specifying BlockDeviceMappings."
        )

    @pytest.mark.parametrize("name", ["ImageId", "KeyName", "UserData", "Volumes", "SecurityGroups"])
    def test_other_properties_replace_it(self, name):
        assert Instance().change({}, {name: "x"}, frozenset({name})) == "replace"

    @pytest.mark.parametrize(
        "name",
        [
            "DisableApiTermination",
            "KernelId",
            "Monitoring",
            "PlacementGroupName",
            "PrivateIpAddress",
            "Tenancy",
        ],
    )
    def test_properties_without_a_meaning_are_refused(self, name):
        _, faults = Instance().read_properties({**REQUIRED, name: "default"})
        assert f"Property {name} not implemented yet" in [fault.message for fault in faults]


class TestSecurityGroups:
    def rules(self, **given):
        return Ec2SecurityGroup().mapped({"GroupDescription": "d", **given})["rules"]

    def test_rules_are_neutrons(self):
        rule = {"IpProtocol": "tcp", "FromPort": "80", "ToPort": "90", "CidrIp": "10.0.0.0/8"}
        assert self.rules(SecurityGroupIngress=[rule], SecurityGroupEgress=[rule]) == [
            {
                "direction": direction,
                "ethertype": "IPv4",
                "protocol": "tcp",
                "port_range_min": 80,
                "port_range_max": 90,
                "remote_ip_prefix": "10.0.0.0/8",
            }
            for direction in ("ingress", "egress")
        ]

    def test_negative_ports_and_protocols_are_all(self):
        rule = {"IpProtocol": "-1", "FromPort": "-1", "ToPort": "-1", "CidrIp": "10.0.0.0/8"}
        assert self.rules(SecurityGroupIngress=[rule]) == [
            {"direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": "10.0.0.0/8"}
        ]

    def test_a_rule_without_ports_has_no_addresses(self):
        rule = {"IpProtocol": "tcp", "CidrIp": "10.0.0.0/8"}
        assert "remote_ip_prefix" not in self.rules(SecurityGroupIngress=[rule])[0]

    @pytest.mark.parametrize("name", ["SourceSecurityGroupId", "SourceSecurityGroupName"])
    def test_peers_are_members_of_a_group(self, name):
        (rule,) = self.rules(SecurityGroupIngress=[{"IpProtocol": "tcp", name: "g"}])
        assert (rule["remote_mode"], rule["remote_group_id"]) == ("remote_group_id", "g")

    def test_an_invalid_protocol_fails_it(self, script):
        kind = Ec2SecurityGroup()
        rules = [{"IpProtocol": "nothing"}]
        ctx = context(kind, script, GroupDescription="d", SecurityGroupIngress=rules)
        with pytest.raises(ProviderError, match="nothing"):
            kind.create(ctx, ctx.properties)

    def test_the_group_is_created_with_its_description(self, script):
        kind = Ec2SecurityGroup()
        script.answers("POST", "/security-groups", {"security_group": {"id": "g1"}}, status=201)
        ctx = context(kind, script, GroupDescription="text", VpcId="ignored")
        assert kind.create(ctx, ctx.properties).physical_id == "g1"
        body = script.requests[0].body["security_group"]
        assert body["name"] == "stack-it-abc"
        assert body["description"].startswith("text ")


class TestVolumes:
    def test_every_property_reaches_cinder(self, script):
        kind = Ec2Volume()
        tags = [{"Key": "a", "Value": "b"}]
        script.answers("POST", "/volumes", {"volume": {"id": "v1"}}, status=202)
        ctx = context(kind, script, AvailabilityZone="zone", Size=3, Tags=tags)
        assert kind.create(ctx, ctx.properties).physical_id == "v1"
        body = script.requests[0].body["volume"]
        assert (body["availability_zone"], body["size"], body["metadata"]["a"]) == ("zone", 3, "b")
        assert kind.mapped({"SnapshotId": "backup"}) == {"backup_id": "backup"}

    def test_a_snapshot_is_a_backup_from_which_it_is_restored(self):
        kind = Ec2Volume()
        assert kind.can_snapshot
        assert kind.restored({"Size": 1}, {"backup_id": "b1"})["SnapshotId"] == "b1"

    @pytest.mark.parametrize("kind", [Ec2Volume, Ec2VolumeAttachment])
    def test_no_property_can_be_changed(self, kind):
        assert all(declared.immutable for declared in kind.properties.values())

    def test_an_attachment_is_cinders(self):
        given = {"InstanceId": "s1", "VolumeId": "v1", "Device": "/dev/vdc"}
        assert Ec2VolumeAttachment().mapped(given) == {
            "instance_uuid": "s1",
            "volume_id": "v1",
            "mountpoint": "/dev/vdc",
        }
        _, faults = Ec2VolumeAttachment().read_properties({**given, "Device": "/dev/sda"})
        assert len(faults) == 1


def test_an_absent_object_is_absent(script):
    script.answers("GET", ".*", status=404)
    for kind, given in ((Instance(), REQUIRED), (Ec2SecurityGroup(), {"GroupDescription": "d"})):
        ctx = replace(context(kind, script, **given), action="CHECK")
        assert kind.observe(ctx, "x") == Observation(exists=False)


class TestEarlyAttributesOfInstances:
    def observed(self, script, **given):
        script.answers("GET", "/servers/s1", {"server": {**ACTIVE, "status": "BUILD", "addresses": {}}})
        port = {"id": "p1", "fixed_ips": [{"ip_address": "10.0.0.9", "subnet_id": "n"}]}
        script.answers("GET", "/ports/p1", {"port": port})
        kind = Instance()
        ctx = replace(context(kind, script, **REQUIRED, **given), early_pending=True)
        return kind.observe(ctx, "s1").attributes

    def test_the_address_of_the_only_interface_is_known_early(self, script):
        attributes = self.observed(script, NetworkInterfaces=["p1"])
        assert {name: attributes[name] for name in Instance.early_attributes} == dict.fromkeys(
            ("PrivateIp", "PublicIp", "PrivateDnsName", "PublicDnsName"), "10.0.0.9"
        )

    def test_no_other_address_is_known_early(self, script):
        assert self.observed(script) == {}
        assert self.observed(script, NetworkInterfaces=["p1", "p2"]) == {}

    def test_the_answer_of_the_create_shows_them(self, script):
        script.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
        port = {"id": "p1", "fixed_ips": [{"ip_address": "10.0.0.9", "subnet_id": "n"}]}
        script.answers("GET", "/ports/p1", {"port": port})
        kind = Instance()
        ctx = replace(context(kind, script, **REQUIRED, NetworkInterfaces=["p1"]), early_pending=True)
        assert kind.create(ctx, ctx.properties).observation.attributes["PrivateIp"] == "10.0.0.9"
