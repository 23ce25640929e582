"""CloudFormation's types of EC2 on a cloud."""

from __future__ import annotations

import pytest

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORTS, ROUTERS, SECURITY_GROUPS
from tests.openstack.driver import Driver

IMAGE, FLAVOR = "cirros", "m1.nano"


@pytest.fixture
def flavor(driver: Driver) -> str:
    return next(
        one["id"] for one in driver.openstack.compute.listed("/flavors", "flavors") if one["name"] == FLAVOR
    )


@pytest.fixture
def larger(driver: Driver) -> str:
    return next(
        one["id"]
        for one in driver.openstack.compute.listed("/flavors", "flavors")
        if one["name"] == "m1.tiny"
    )


@pytest.fixture
def image(driver: Driver) -> str:
    images = driver.openstack.image.listed("/images", "images", {"name": IMAGE})
    return str(next(iter(images))["id"])


@pytest.fixture
def vpc(driver: Driver) -> str:
    return driver.create("AWS::EC2::VPC", {"CidrBlock": "10.77.0.0/16"})


@pytest.fixture
def subnet(driver: Driver, vpc: str) -> str:
    return driver.create("AWS::EC2::Subnet", {"VpcId": vpc, "CidrBlock": "10.77.1.0/24"})


def test_a_vpc_has_a_router_that_its_subnets_use(driver: Driver, vpc: str, subnet: str) -> None:
    neutron = driver.openstack.network
    name = driver.attributes(vpc, "show")["show"]["name"]
    (router,) = neutron.search(ROUTERS, name=name)
    (port,) = neutron.search(PORTS, device_id=router["id"])
    assert port["fixed_ips"][0]["subnet_id"] == subnet
    assert driver.find(vpc) == [vpc]
    assert driver.find(subnet) == [subnet]
    driver.delete(subnet)
    driver.delete(vpc)
    assert list(neutron.search(ROUTERS, name=name)) == []


def test_a_route_table_replaces_the_default_router_of_a_subnet(driver: Driver, vpc: str, subnet: str) -> None:
    neutron = driver.openstack.network
    (default,) = neutron.search(ROUTERS, name=driver.attributes(vpc, "show")["show"]["name"])
    table = driver.create("AWS::EC2::RouteTable", {"VpcId": vpc})
    gateway = driver.create("AWS::EC2::InternetGateway", {})
    given = {"RouteTableId": table, "SubnetId": subnet}
    association = driver.create("AWS::EC2::SubnetRouteTableAssociation", given)
    assert [port["device_id"] for port in neutron.search(PORTS, fixed_ips=f"subnet_id={subnet}")] == [table]
    resource = driver.resources.pop(vpc)  # the attachment has the same physical id
    attachment = driver.create("AWS::EC2::VPCGatewayAttachment", {"VpcId": vpc, "InternetGatewayId": gateway})
    assert (neutron.find(ROUTERS, table) or {})["external_gateway_info"]["network_id"]
    driver.delete(attachment)
    assert not (neutron.find(ROUTERS, table) or {})["external_gateway_info"]
    driver.resources = {vpc: resource, **driver.resources}
    driver.delete(association)
    assert [p["device_id"] for p in neutron.search(PORTS, fixed_ips=f"subnet_id={subnet}")] == [default["id"]]


def test_a_network_interface_has_an_address_and_groups(driver: Driver, subnet: str) -> None:
    group = driver.create("AWS::EC2::SecurityGroup", {"GroupDescription": "d"})
    given = {"SubnetId": subnet, "PrivateIpAddress": "10.77.1.9", "GroupSet": [group]}
    port = driver.create("AWS::EC2::NetworkInterface", given)
    assert driver.find(port) == [port]
    assert driver.attributes(port) == {"PrivateIpAddress": "10.77.1.9"}
    driver.update(port, GroupSet=[])
    assert driver.drift(port) == {}
    driver.update(port, GroupSet=None)
    groups = (driver.openstack.network.find(PORTS, port) or {})["security_groups"]
    assert len(groups) == 1
    assert groups != [group]


def test_rules_of_a_security_group_follow_the_template(driver: Driver) -> None:
    web = {"IpProtocol": "tcp", "FromPort": "80", "ToPort": "80", "CidrIp": "0.0.0.0/0"}
    ping = {"IpProtocol": "icmp", "FromPort": "-1", "ToPort": "-1", "CidrIp": "0.0.0.0/0"}
    group = driver.create(
        "AWS::EC2::SecurityGroup", {"GroupDescription": "d", "SecurityGroupIngress": [web, ping]}
    )
    assert driver.find(group) == [group]
    assert driver.drift(group) == {}
    neutron = driver.openstack.network

    def rules() -> set[tuple[str, str | None, int | None]]:
        found = (neutron.find(SECURITY_GROUPS, group) or {})["security_group_rules"]
        return {(one["direction"], one["protocol"], one["port_range_min"]) for one in found}

    assert rules() == {("ingress", "tcp", 80), ("ingress", "icmp", None), ("egress", None, None)}
    driver.update(group, SecurityGroupIngress=[ping], SecurityGroupEgress=[web])
    assert rules() == {("ingress", "icmp", None), ("egress", "tcp", 80)}
    assert driver.drift(group) == {}


def test_an_instance_with_volumes_is_created_updated_and_deleted(
    driver: Driver, image: str, flavor: str, larger: str, subnet: str
) -> None:
    volume = driver.create("AWS::EC2::Volume", {"Size": 1, "AvailabilityZone": "nova"})
    assert driver.find(volume) == [volume]
    instance = driver.create(
        "AWS::EC2::Instance",
        {
            "ImageId": image,
            "InstanceType": flavor,
            "SubnetId": subnet,
            "Tags": [{"Key": "a", "Value": "b"}],
            "Volumes": [{"VolumeId": volume, "Device": "/dev/vdb"}],
        },
    )
    assert driver.find(instance) == [instance]
    nova = driver.openstack.compute
    assert [one["volumeId"] for one in nova.volume_attachments(instance)] == [volume]
    attributes = driver.attributes(instance)
    assert attributes["PublicIp"] == attributes["PrivateDnsName"]
    assert attributes["PrivateIp"].startswith("10.77.1.")
    assert attributes["AvailabilityZone"] == "nova"
    driver.update(instance, InstanceType=larger, Tags=[{"Key": "c", "Value": "d"}])
    assert driver.drift(instance) == {}
    assert (nova.current_server(instance) or {})["metadata"] == {"c": "d"}
    driver.delete(instance)


def test_an_address_is_associated_with_an_instance(
    driver: Driver, image: str, flavor: str, vpc: str, subnet: str
) -> None:
    given = {"ImageId": image, "InstanceType": flavor, "SubnetId": subnet}
    instance = driver.create("AWS::EC2::Instance", given)
    neutron = driver.openstack.network
    address = driver.create("AWS::EC2::EIP", {"Domain": "vpc"})
    assert driver.find(address) == [address]
    shown = neutron.find(FLOATING_IPS, address) or {}
    assert driver.observe(address).reference_id == shown["floating_ip_address"]
    assert driver.attributes(address) == {"AllocationId": address}
    resource = driver.resources.pop(address)  # the association has the same physical id
    association = driver.create("AWS::EC2::EIPAssociation", {"AllocationId": address, "InstanceId": instance})
    (port,) = neutron.search(PORTS, device_id=instance)
    assert (neutron.find(FLOATING_IPS, address) or {})["port_id"] == port["id"]
    driver.delete(association)
    assert not (neutron.find(FLOATING_IPS, address) or {})["port_id"]
    by_address = {"EIP": shown["floating_ip_address"], "InstanceId": instance}
    association = driver.create("AWS::EC2::EIPAssociation", by_address)
    assert (neutron.find(FLOATING_IPS, address) or {})["port_id"] == port["id"]
    driver.delete(association)
    driver.resources[address] = resource
    driver.update(address, InstanceId=instance)
    assert (neutron.find(FLOATING_IPS, address) or {})["port_id"] == port["id"]
    driver.update(address, InstanceId=None)
    assert not (neutron.find(FLOATING_IPS, address) or {})["port_id"]
    driver.delete(address)
    # The association has connected the VPC with the external network.
    (router,) = neutron.search(ROUTERS, name=driver.attributes(vpc, "show")["show"]["name"])
    assert router["external_gateway_info"]


def test_a_volume_is_attached(driver: Driver, image: str, flavor: str, subnet: str) -> None:
    volume = driver.create(
        "AWS::EC2::Volume", {"Size": 1, "AvailabilityZone": "nova", "Tags": [{"Key": "a", "Value": "b"}]}
    )
    given = {"ImageId": image, "InstanceType": flavor, "SubnetId": subnet}
    instance = driver.create("AWS::EC2::Instance", given)
    resource = driver.resources.pop(volume)  # the attachment has the same physical id
    attachment = driver.create(
        "AWS::EC2::VolumeAttachment", {"InstanceId": instance, "VolumeId": volume, "Device": "/dev/vdb"}
    )
    assert [one["volumeId"] for one in driver.openstack.compute.volume_attachments(instance)] == [volume]
    driver.delete(attachment)
    driver.resources = {volume: resource, **driver.resources}
