"""A stack of each service: its resources, and the changes of two updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Changes = Mapping[str, Mapping[str, Any]]  # by resource: new values of properties

POOL: Final = "00000000-0000-4000-8000-000000000000"  # an id is not looked up
MEASURED: Final = {"threshold": 50, "aggregation_method": "mean", "comparison_operator": "gt"}
MEMBER: Final = {"name": "x", "ref": {"get_resource": "a"}}


@dataclass(frozen=True)
class StackOfService:
    """The resources of a stack, and its updates."""

    resources: Mapping[str, Any]
    in_place: Changes
    replacing: Changes
    kept: frozenset[str] = frozenset()  # kinds of objects that Heat leaves, too
    same_id: frozenset[str] = frozenset()  # replaced resources whose id is their name

    def changed(self, *updates: Changes) -> dict[str, Any]:
        """Return the resources after some updates."""
        changed = {name: {**body} for name, body in self.resources.items()}
        for name, values in (item for update in updates for item in update.items()):
            changed[name]["properties"] = {**changed[name]["properties"], **values}
        return changed


def of(kind: str, **properties: Any) -> dict[str, Any]:
    """Return a resource of a template."""
    return {"type": kind, "properties": properties}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a resource."""
    return {"get_resource": name}


AODH: Final = StackOfService(
    {
        "policy": of(
            "OS::Heat::ScalingPolicy",
            auto_scaling_group_id="group",
            adjustment_type="change_in_capacity",
            scaling_adjustment=1,
        ),
        "resources": of(
            "OS::Aodh::GnocchiResourcesAlarm",
            metric="cpu_util",
            resource_type="instance",
            resource_id="r1",
            alarm_actions=[{"get_attr": ["policy", "alarm_url"]}],
            **MEASURED,
        ),
        "by_resources": of(
            "OS::Aodh::GnocchiAggregationByResourcesAlarm",
            metric="cpu_util",
            resource_type="instance",
            query='{"=": {"server_group": "g"}}',
            **MEASURED,
        ),
        "by_metrics": of("OS::Aodh::GnocchiAggregationByMetricsAlarm", metrics=["m1", "m2"], **MEASURED),
        "prometheus": of("OS::Aodh::PrometheusAlarm", query="up", threshold=1),
        "event": of("OS::Aodh::EventAlarm", query=[{"field": "traits.id", "op": "eq", "value": "x"}]),
        "members": of("OS::Aodh::LBMemberHealthAlarm", pool=POOL, stack="s1", autoscaling_group_id="g1"),
        "composite": of(
            "OS::Aodh::CompositeAlarm",
            composite_rule={
                "operator": "or",
                "rules": [
                    {"type": "prometheus", "query": "up", "threshold": 1},
                    {"type": "prometheus", "query": "x", "threshold": 2},
                ],
            },
        ),
        "meter": of("OS::Aodh::Alarm", meter_name="cpu_util", threshold=50, matching_metadata={"a": "x"}),
        "watch": of(
            "AWS::CloudWatch::Alarm",
            MetricName="cpu_util",
            Period="60",
            EvaluationPeriods="1",
            Threshold="50",
            Statistic="Average",
            ComparisonOperator="GreaterThanThreshold",
            AlarmActions=[{"get_attr": ["policy", "signal_url"]}],
        ),
    },
    {
        name: {"AlarmDescription" if name == "watch" else "description": f"changed-{name}"}
        for name in (
            *("resources", "by_resources", "by_metrics", "prometheus", "event", "members", "composite"),
            *("meter", "watch"),
        )
    },
    {
        "prometheus": {
            "time_constraints": [{"name": "night", "start": "0 22 * * *", "duration": 3600, "timezone": ""}]
        },
        "members": {"stack": "s2"},
        "meter": {"meter_name": "memory"},
        "watch": {"MetricName": "memory"},
    },
)

SWIFT: Final = StackOfService(
    {
        "container": of(
            "OS::Swift::Container",
            **{"name": "documents", "X-Container-Meta": {"colour": "green"}, "PurgeOnDelete": True},
        ),
        "unnamed": of("OS::Swift::Container"),
        "bucket": of("AWS::S3::Bucket", AccessControl="Private", Tags=[{"Key": "a", "Value": "b"}]),
    },
    {},
    {
        "container": {"X-Container-Meta": {"colour": "changed-green"}},
        "unnamed": {"X-Container-Read": ".r:*"},
        "bucket": {"AccessControl": "PublicRead"},
    },
    same_id=frozenset({"container"}),
)

BARBICAN: Final = StackOfService(
    {
        "a": of("OS::Barbican::Secret", payload="first", secret_type="passphrase"),
        "b": of("OS::Barbican::Secret", payload="second"),
        "order": of("OS::Barbican::Order", type="key", algorithm="aes", bit_length=256, mode="cbc"),
        "generic": of("OS::Barbican::GenericContainer", secrets=[MEMBER]),
        "certificate": of(
            "OS::Barbican::CertificateContainer", certificate_ref=ref("a"), private_key_ref=ref("b")
        ),
        "pair": of("OS::Barbican::RSAContainer", public_key_ref=ref("b")),
        "copy": of("OS::Heat::Value", value={"get_attr": ["a", "decrypted_payload"]}),
    },
    {},
    {
        "a": {"payload": "third"},  # the containers that name it follow
        "order": {"bit_length": 128},
        "pair": {"private_key_ref": ref("a")},
    },
    frozenset({"barbican.secret"}),  # generated by the orders
)

DESIGNATE: Final = StackOfService(
    {
        "zone": of("OS::Designate::Zone", name="first.example.org.", email="a@example.org"),
        "secondary": of(
            "OS::Designate::Zone", name="second.example.org.", type="SECONDARY", primaries=["192.0.2.1"]
        ),
        "records": of(
            "OS::Designate::RecordSet",
            zone=ref("zone"),
            type="A",
            name="www.first.example.org.",
            records=["192.0.2.1"],
        ),
        "texts": of("OS::Designate::RecordSet", zone=ref("zone"), type="TXT", records=["text"]),
    },
    {
        "zone": {"description": "changed-zone"},
        "secondary": {"primaries": ["192.0.2.77"]},
        "records": {"description": "changed-records", "ttl": 60},
    },
    {"zone": {"name": "third.example.org."}, "records": {"name": "www.third.example.org."}},
)

TASKS: Final = [{"name": "t", "action": "std.noop"}]
MISTRAL: Final = StackOfService(
    {
        "workflow": of(
            "OS::Mistral::Workflow",
            type="direct",
            input={"who": "me"},
            output={"resource_id": "id-<% $.who %>"},
            tasks=TASKS,
        ),
        "trigger": of(
            "OS::Mistral::CronTrigger",
            pattern="0 1 * * *",
            workflow={"name": ref("workflow"), "input": {"who": "you"}},
            count=3,
        ),
        "external": of(
            "OS::Mistral::ExternalResource",
            actions={action: {"workflow": ref("workflow")} for action in ("CREATE", "UPDATE", "DELETE")},
            input={"who": "you"},
            replace_on_change_inputs=["who"],
        ),
    },
    {"workflow": {"description": "changed-workflow"}},
    {"trigger": {"pattern": "0 2 * * *"}, "external": {"input": {"who": "them"}}},
    frozenset({"mistral.execution"}),
)

OCTAVIA: Final = StackOfService(
    {
        "profile": of("OS::Octavia::FlavorProfile", flavor_data='{"loadbalancer_topology": "SINGLE"}'),
        "flavor": of("OS::Octavia::Flavor", flavor_profile=ref("profile")),
        "zones": of(
            "OS::Octavia::AvailabilityZoneProfile", availability_zone_data='{"compute_zone": "nova"}'
        ),
        "zone": of("OS::Octavia::AvailabilityZone", availability_zone_profile=ref("zones")),
        "quota": of("OS::Octavia::Quota", project="demo", pool=50),
        "balancer": of("OS::Octavia::LoadBalancer", vip_subnet="private-subnet"),
        "pool": of(
            "OS::Octavia::Pool", loadbalancer=ref("balancer"), protocol="HTTP", lb_algorithm="ROUND_ROBIN"
        ),
        "listener": of(
            "OS::Octavia::Listener",
            loadbalancer=ref("balancer"),
            protocol="HTTP",
            protocol_port=80,
            default_pool=ref("pool"),
        ),
        "member": of("OS::Octavia::PoolMember", pool=ref("pool"), address="10.10.1.9", protocol_port=8080),
        "monitor": of(
            "OS::Octavia::HealthMonitor", pool=ref("pool"), type="HTTP", delay=5, timeout=3, max_retries=3
        ),
        "policy": of("OS::Octavia::L7Policy", listener=ref("listener"), action="REJECT"),
        "rule": of(
            "OS::Octavia::L7Rule", l7policy=ref("policy"), type="PATH", compare_type="STARTS_WITH", value="/a"
        ),
    },
    {
        "profile": {"name": "changed-profile"},
        "flavor": {"description": "changed-flavor"},
        "zone": {"description": "changed-zone"},
        "quota": {"pool": 61},
        "balancer": {"description": "changed-balancer"},
        "pool": {"description": "changed-pool"},
        "listener": {"description": "changed-listener"},
        "member": {"tags": ["changed-member"]},
        "monitor": {"url_path": "/changed-monitor"},
        "policy": {"description": "changed-policy"},
        "rule": {"value": "/changed-rule"},
    },
    {
        "listener": {"protocol_port": 81},  # the policy and its rule follow
        "member": {"address": "10.10.1.10"},
    },
)

ELASTIC: Final = StackOfService(
    {
        "server": of("OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=[{"network": "private"}]),
        "second": of("OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=[{"network": "private"}]),
        "balancer": of(
            "AWS::ElasticLoadBalancing::LoadBalancer",
            AvailabilityZones=["nova"],
            Listeners=[{"LoadBalancerPort": "80", "InstancePort": "8080", "Protocol": "HTTP"}],
            Instances=[ref("server")],
        ),
    },
    {"balancer": {"Instances": [ref("second")]}},
    {"balancer": {"Listeners": [{"LoadBalancerPort": "81", "InstancePort": "8081", "Protocol": "HTTP"}]}},
)

STACKS: Final[Mapping[str, StackOfService]] = {
    "aodh": AODH,
    "swift": SWIFT,
    "barbican": BARBICAN,
    "designate": DESIGNATE,
    "mistral": MISTRAL,
    "octavia": OCTAVIA,
    "elastic": ELASTIC,
}
