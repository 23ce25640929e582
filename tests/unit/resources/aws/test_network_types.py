"""Types of CloudFormation on the simulated Neutron."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.networking.network import FLOATING_IPS, NETWORKS, PORTS, ROUTERS, SUBNETS
from orchestrator.errors import ProviderError
from orchestrator.resources.aws.elastic_ip import ElasticIp
from orchestrator.resources.aws.elastic_ip_association import ElasticIpAssociation
from orchestrator.resources.aws.internet_gateway import VpcGatewayAttachment
from orchestrator.resources.aws.network_interface import NetworkInterface
from orchestrator.resources.aws.route_table import RouteTable
from orchestrator.resources.aws.route_table_association import SubnetRouteTableAssociation
from orchestrator.resources.aws.subnet import Ec2Subnet
from orchestrator.resources.aws.vpc import Vpc
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.driver import Driver

pytestmark = pytest.mark.filterwarnings("ignore:The 'service_type' parameter")
CIDR = "10.77.1.0/24"


@pytest.fixture
def driver(simulated_cloud: SimulatedCloud) -> Iterator[Driver]:
    def session():
        return Session(
            Password(
                simulated_cloud.auth_url,
                username="admin",
                password=simulated_cloud.password,
                project_name="demo",
                user_domain_name="Default",
                project_domain_name="Default",
            )
        )

    cloud = Cloud(session, "RegionOne")
    driver = Driver(cloud, "ec2", cloud.session().get_project_id() or "")
    yield driver
    driver.clean_up()


@pytest.fixture
def neutron(driver):
    return driver.openstack.network


@pytest.fixture
def vpc(driver):
    return driver.create(Vpc, {"CidrBlock": "10.77.0.0/16"})


@pytest.fixture
def subnet(driver, vpc):
    return driver.create(Ec2Subnet, {"VpcId": vpc, "CidrBlock": CIDR, "AvailabilityZone": "zone"})


@pytest.fixture
def default_router(driver, neutron, vpc):
    name = driver.attributes(vpc, "show")["show"]["name"]
    return next(iter(neutron.search(ROUTERS, name=name)))["id"]


@pytest.fixture
def instance_port(neutron, vpc, subnet):
    """A port that belongs to the instance `server-1`."""
    fixed = [{"subnet_id": subnet}]
    port = neutron.create(PORTS, {"network_id": vpc, "fixed_ips": fixed, "device_id": "server-1"})
    yield port
    neutron.remove(PORTS, port["id"])


def router_of(neutron, subnet_id):
    ports = neutron.search(PORTS, fixed_ips=f"subnet_id={subnet_id}")
    return [port["device_id"] for port in ports if "router_interface" in port["device_owner"]]


class TestVpcs:
    def test_it_is_a_network_and_a_router_of_the_same_name(self, driver, neutron, vpc, default_router):
        assert neutron.find(NETWORKS, vpc)["name"] == neutron.find(ROUTERS, default_router)["name"]
        assert driver.find(vpc) == [vpc]
        driver.delete(vpc)
        assert neutron.find(ROUTERS, default_router) is None

    def test_its_router_is_created_once(self, driver, neutron, vpc, default_router):
        resource = driver.resources[vpc]
        resource.type.advance(resource.ctx, vpc, resource.ctx.properties, "create_router")
        name = neutron.find(ROUTERS, default_router)["name"]
        assert len(list(neutron.search(ROUTERS, name=name))) == 1

    def test_routers_with_the_same_name_are_ambiguous(self, driver, neutron, vpc, default_router):
        name = neutron.find(ROUTERS, default_router)["name"]
        other = neutron.create(ROUTERS, {"name": name})
        with pytest.raises(ProviderError, match=f"Multiple routers found with name {name}"):
            driver.create(RouteTable, {"VpcId": vpc})
        neutron.remove(ROUTERS, other["id"])


class TestSubnets:
    def test_it_is_connected_with_the_router_of_the_vpc(self, driver, neutron, default_router, subnet):
        assert router_of(neutron, subnet) == [default_router]
        assert neutron.find(SUBNETS, subnet)["cidr"] == CIDR
        assert driver.attributes(subnet) == {"AvailabilityZone": "zone"}
        assert driver.find(subnet) == [subnet]
        driver.delete(subnet)
        assert router_of(neutron, subnet) == []

    def test_a_network_without_a_router_needs_none(self, driver, neutron):
        network = neutron.create(NETWORKS, {"name": driver.name()})
        item = driver.create(Ec2Subnet, {"VpcId": network["id"], "CidrBlock": CIDR})
        assert router_of(neutron, item) == []
        driver.delete(item)
        neutron.remove(NETWORKS, network["id"])


class TestRouteTables:
    def test_an_association_replaces_the_default_router_until_it_is_deleted(
        self, driver, neutron, vpc, subnet, default_router
    ):
        table = driver.create(RouteTable, {"VpcId": vpc})
        association = driver.create(SubnetRouteTableAssociation, {"RouteTableId": table, "SubnetId": subnet})
        assert router_of(neutron, subnet) == [table]
        assert driver.find(association) == [association]
        assert driver.observe(association).reference_id == "a"
        driver.delete(association)
        assert router_of(neutron, subnet) == [default_router]

    def test_it_has_the_gateway_of_the_default_router(self, driver, neutron, vpc, default_router):
        external = next(iter(neutron.search(NETWORKS, **{"router:external": True})))["id"]
        neutron.set_gateway(default_router, {"network_id": external})
        table = driver.create(RouteTable, {"VpcId": vpc})
        assert neutron.find(ROUTERS, table)["external_gateway_info"]["network_id"] == external

    def test_a_gateway_attachment_connects_all_route_tables_of_the_vpc(self, driver, neutron, vpc):
        tables = [driver.create(RouteTable, {"VpcId": vpc}) for _ in range(2)]
        resource = driver.resources.pop(vpc)  # the attachment has the same physical id
        attachment = driver.create(VpcGatewayAttachment, {"VpcId": vpc})
        assert all(neutron.find(ROUTERS, table)["external_gateway_info"] for table in tables)
        assert driver.observe(attachment).reference_id == "a"
        driver.delete(attachment)
        assert not any(neutron.find(ROUTERS, table)["external_gateway_info"] for table in tables)
        driver.resources = {vpc: resource, **driver.resources}

    def test_a_gateway_attachment_requires_the_route_tables_of_its_vpc(self):
        table = "AWS::EC2::RouteTable"
        resources = {
            "vpc": {"Type": "AWS::EC2::VPC"},
            "other": {"Type": "AWS::EC2::VPC"},
            "one": {"Type": table, "Properties": {"VpcId": {"Ref": "vpc"}}},
            "two": {"Type": table, "Properties": {"VpcId": {"Ref": "other"}}},
            "it": {"Type": "AWS::EC2::VPCGatewayAttachment", "Properties": {"VpcId": {"Ref": "vpc"}}},
        }
        template = load({"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}, Limits())
        definitions = template.resources
        required = VpcGatewayAttachment().implicit_requires(definitions["it"], definitions)
        assert list(required) == ["one"]


class TestNetworkInterfaces:
    def test_it_has_an_address_and_security_groups(self, driver, neutron, subnet):
        given = {"SubnetId": subnet, "PrivateIpAddress": "10.77.1.9", "GroupSet": [], "Description": "text"}
        item = driver.create(NetworkInterface, given)
        port = neutron.find(PORTS, item)
        assert port["fixed_ips"] == [{"subnet_id": subnet, "ip_address": "10.77.1.9"}]
        assert port["security_groups"] == []
        assert port["description"].startswith("text ")
        assert driver.attributes(item) == {"PrivateIpAddress": "10.77.1.9"}
        assert driver.find(item) == [item]
        driver.update(item, GroupSet=None)
        assert len(neutron.find(PORTS, item)["security_groups"]) == 1  # the default group

    def test_a_replacement_receives_its_address(self, driver, neutron, subnet):
        given = {"SubnetId": subnet, "PrivateIpAddress": "10.77.1.9"}
        item = driver.create(NetworkInterface, given)
        resource = driver.resources[item]
        assert not driver.observe(item, "RELEASE").released
        resource.type.release(resource.ctx, item)
        assert driver.observe(item, "RELEASE").released
        resource.type.reclaim(resource.ctx, item, resource.ctx.properties)
        assert neutron.find(PORTS, item)["fixed_ips"][0]["ip_address"] == "10.77.1.9"


class TestElasticIps:
    def test_its_reference_is_the_address(self, driver, neutron):
        item = driver.create(ElasticIp, {"Domain": "vpc"})
        address = neutron.find(FLOATING_IPS, item)["floating_ip_address"]
        assert driver.observe(item).reference_id == address
        assert driver.attributes(item) == {"AllocationId": item}
        assert driver.find(item) == [item]

    def test_an_instance_is_associated_and_exchanged(self, driver, neutron, default_router, instance_port):
        external = next(iter(neutron.search(NETWORKS, **{"router:external": True})))["id"]
        neutron.set_gateway(default_router, {"network_id": external})
        item = driver.create(ElasticIp, {"InstanceId": "server-1"})
        assert neutron.find(FLOATING_IPS, item)["port_id"] == instance_port["id"]
        assert driver.observe(item).properties == {"InstanceId": "server-1"}
        driver.update(item, InstanceId=None)
        assert neutron.find(FLOATING_IPS, item)["port_id"] is None
        driver.update(item, InstanceId="server-1")
        assert neutron.find(FLOATING_IPS, item)["port_id"] == instance_port["id"]

    def test_an_instance_without_an_interface_fails_it(self, driver):
        with pytest.raises(ProviderError, match="No network interface found for server nothing"):
            driver.create(ElasticIp, {"InstanceId": "nothing"})


class TestElasticIpAssociations:
    @pytest.fixture
    def address(self, driver):
        return driver.create(ElasticIp, {})

    def test_an_allocation_connects_the_vpc(self, driver, neutron, default_router, instance_port, address):
        eip = driver.resources.pop(address)  # the association has the same physical id
        item = driver.create(ElasticIpAssociation, {"AllocationId": address, "InstanceId": "server-1"})
        assert item == address
        assert neutron.find(FLOATING_IPS, address)["port_id"] == instance_port["id"]
        assert neutron.find(ROUTERS, default_router)["external_gateway_info"]
        driver.delete(item)
        assert neutron.find(FLOATING_IPS, address)["port_id"] is None
        given = {"AllocationId": address, "NetworkInterfaceId": instance_port["id"]}
        item = driver.create(ElasticIpAssociation, given)
        assert neutron.find(FLOATING_IPS, address)["port_id"] == instance_port["id"]
        driver.delete(item)
        driver.resources = {address: eip, **driver.resources}

    def test_an_address_is_exchanged_and_that_of_another_is_kept(
        self, driver, neutron, default_router, instance_port, address
    ):
        external = next(iter(neutron.search(NETWORKS, **{"router:external": True})))["id"]
        neutron.set_gateway(default_router, {"network_id": external})
        second = driver.create(ElasticIp, {})
        texts = [neutron.find(FLOATING_IPS, one)["floating_ip_address"] for one in (address, second)]
        item = driver.create(ElasticIpAssociation, {"EIP": texts[0], "InstanceId": "server-1"})
        assert item == texts[0]
        assert driver.observe(item).reference_id == driver.resources[item].ctx.physical_name
        item = driver.update(item, EIP=texts[1])
        assert item == texts[1]
        assert neutron.find(FLOATING_IPS, address)["port_id"] is None
        assert neutron.find(FLOATING_IPS, second)["port_id"] == instance_port["id"]
        resource = driver.resources[item]
        other = replace(resource.ctx, data={**resource.ctx.data, "port": "of another resource"})
        resource.type.delete(other, item)
        assert neutron.find(FLOATING_IPS, second)["port_id"] == instance_port["id"]
        driver.delete(item)
        assert neutron.find(FLOATING_IPS, second)["port_id"] is None

    def test_an_unknown_address_fails_it(self, driver):
        with pytest.raises(ProviderError, match=r"The FloatingIP \(192.0.2.1\) could not be found\."):
            driver.create(ElasticIpAssociation, {"EIP": "192.0.2.1", "InstanceId": "server-1"})

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"InstanceId": "i"}, "Either 'EIP' or 'AllocationId' must be provided."),
            (
                {"EIP": "1.2.3.4", "AllocationId": "a", "InstanceId": "i"},
                "Either 'EIP' or 'AllocationId' must be provided.",
            ),
            ({"EIP": "1.2.3.4"}, "Must specify 'InstanceId' if you specify 'EIP'."),
            (
                {"AllocationId": "a"},
                "At least one of the following properties must be specified: InstanceId, NetworkInterfaceId.",
            ),
        ],
    )
    def test_it_needs_an_address_and_a_target(self, given, message):
        resources = {"it": {"Type": "AWS::EC2::EIPAssociation", "Properties": given}}
        template = load({"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}, Limits())
        (fault,) = ElasticIpAssociation().validate_among("it", {}, template.resources)
        assert fault.message == message

    def test_address_and_target_together_replace_it(self):
        kind, after = ElasticIpAssociation(), {"EIP": "b", "InstanceId": "y"}
        assert kind.change({}, after, frozenset({"EIP", "InstanceId"})) == "replace"
        assert kind.change({}, after, frozenset({"EIP"})) == "update"
        assert kind.change({}, after, frozenset({"InstanceId"})) == "update"
