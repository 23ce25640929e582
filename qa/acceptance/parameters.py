"""Values of the parameters of a template on a small cloud."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

IMAGE, FLAVOR, PUBLIC_NETWORK = "cirros", "m1.small", "public"
FLAVORS: Final = ("m1.nano", "m1.tiny", "m1.small", "m1.medium", "m1.large")
TEXT: Final = "Corpus1a"
NUMBER: Final = 1

# By the names of parameters, without regard to case.
BY_NAME: Final = (
    (re.compile("public_?net"), PUBLIC_NETWORK),
    (re.compile("security_group(_name)?$"), "default"),
    (re.compile("sa_password$"), "Corpus-1a"),
    (re.compile("cidr"), "10.99.0.0/24"),
    (re.compile("gateway"), "10.99.0.1"),
    (re.compile("pool_?start"), "10.99.0.10"),
    (re.compile("pool_?end"), "10.99.0.99"),
    (re.compile("url"), "http://127.0.0.1:9/"),
    (re.compile("email"), "someone@example.com"),
    (re.compile("^server1$|_ip$"), "10.99.0.5"),
    (re.compile("availability_?zone$"), "nova"),
)
OWN: Final = re.compile("key(_?name)?|ssh_?key|(private_?)?network(_id)?|private_sub_?network")


def values(template: Mapping[str, Any], own: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for those parameters that need it; `given` has precedence. `own` is the name of the
    project's key pair, network and subnet.
    """
    declared = template.get("parameters") or template.get("Parameters") or {}
    result = dict(given)
    for name, declaration in declared.items():
        if name not in given:
            schema = {key.lower(): value for key, value in declaration.items()}
            value = _value(name, schema, own)
            if value is not None:
                result[name] = value
    return result


def _value(name: str, schema: Mapping[str, Any], own: str) -> Any:
    lowered, kind, default = name.lower(), str(schema.get("type", "string")).lower(), schema.get("default")
    if OWN.fullmatch(lowered):
        return own
    if "image" in lowered and "version" not in lowered and kind == "string":
        return default if "cfntools" in str(default) else IMAGE
    if re.search("flavor|instance_?type", lowered):
        return _allowed(schema) if default is None else default if default in FLAVORS else FLAVOR
    if default is not None:
        return None
    for pattern, value in BY_NAME:
        if pattern.search(lowered):
            return value
    return _plain(kind, schema)


def _allowed(schema: Mapping[str, Any]) -> str:
    choices = [str(choice) for choice in schema.get("allowedvalues") or ()]
    return FLAVOR if FLAVOR in choices or not choices else choices[0]


def _plain(kind: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("allowedvalues"):
        return schema["allowedvalues"][0]
    if kind == "number":
        return schema.get("minvalue", NUMBER)
    return {"boolean": True, "json": {}, "comma_delimited_list": "", "commadelimitedlist": ""}.get(kind, TEXT)
