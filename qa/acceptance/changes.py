"""A template in which a single property is changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

MARK: Final = "changed"
Change = Callable[[Any], Any]


def _with_key(value: Any) -> Any:
    plain = isinstance(value, Mapping) and not any(key in value for key in ("get_param", "Ref", "get_attr"))
    return {**(value if plain else {}), MARK: "yes"}


def _with_tag(value: Any) -> Any:
    return [*(value or ()), {"Key": MARK, "Value": "yes"}]


def _text(_: Any) -> str:
    return MARK


def _one_more(value: Any) -> Any:
    return int(value) + 1 if isinstance(value, int) or str(value).isdigit() else 2


def _with_rule(value: Any) -> Any:
    rule = {"IpProtocol": "tcp", "FromPort": "8443", "ToPort": "8443", "CidrIp": "0.0.0.0/0"}
    return [*(value or ()), rule]


# In the order of preference: the type, its property, and the new value by the old.
CHANGES: Final[tuple[tuple[str, str, Change], ...]] = (
    ("OS::Nova::Server", "metadata", _with_key),
    ("AWS::EC2::Instance", "Tags", _with_tag),
    ("OS::Cinder::Volume", "description", _text),
    ("OS::Neutron::Port", "name", _text),
    ("AWS::EC2::SecurityGroup", "SecurityGroupIngress", _with_rule),
    ("OS::Keystone::Region", "description", _text),
    ("OS::Keystone::Service", "description", _text),
    ("OS::Keystone::User", "description", _text),
    ("OS::Nova::HostAggregate", "metadata", _with_key),
    ("OS::Heat::InstanceGroup", "Size", _one_more),
    ("OS::Heat::AutoScalingGroup", "desired_capacity", _one_more),
    ("OS::Heat::ResourceGroup", "count", _one_more),
    ("OS::Heat::Stack", "timeout", _one_more),
    ("OS::Heat::RandomString", "salt", _text),
    ("OS::Heat::TestResource", "value", _text),
    ("OS::Heat::SoftwareConfig", "config", _text),
)


def changed(template: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a copy with a changed property, and its place: `server.metadata`. In a template of external
    resources only, the description is changed.
    """
    result: dict[str, Any] = copy.deepcopy(dict(template))
    resources = result.get("resources") or result.get("Resources") or {}
    key = "properties" if "resources" in result else "Properties"
    for kind, name, change in CHANGES:
        for resource, body in resources.items():
            if "external_id" in body:
                continue
            if (body.get("type") or body.get("Type")) == kind:
                properties = body[key] = dict(body.get(key) or {})
                properties[name] = change(properties.get(name))
                return result, f"{resource}.{name}"
    result["description" if "resources" in result else "Description"] = MARK
    return result, "description"
