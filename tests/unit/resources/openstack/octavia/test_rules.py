"""Rules of Octavia's types that a template has to satisfy."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.resources.base import ResourceType
from orchestrator.resources.openstack.octavia.l7_policy import L7Policy
from orchestrator.resources.openstack.octavia.l7_rule import L7Rule
from orchestrator.resources.openstack.octavia.listener import Listener
from orchestrator.resources.openstack.octavia.pool import Pool
from tests.unit.resources.openstack.neutron.operation import definitions

LISTENER = {"loadbalancer": "b", "protocol": "TERMINATED_HTTPS", "protocol_port": 443}
POOL = {"loadbalancer": "b", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
RULE = {"l7policy": "y", "type": "HEADER", "compare_type": "EQUAL_TO", "value": "v"}
NO_CERTIFICATE = "Property default_tls_container_ref required when protocol is TERMINATED_HTTPS."
NO_KEY = "Property key is missing. This property should be specified for rules of HEADER and COOKIE types."
NO_TARGET = "Properties redirect_pool and redirect_url are not required when action type is set to REJECT."
NO_COOKIE = "Property cookie_name must NOT be specified when session_persistence type is set to SOURCE_IP."


def faults(kind: type[ResourceType], given: dict[str, Any]) -> list[str]:
    resources = definitions(a=(kind.name, given))
    known = {
        name: value
        for name, value in given.items()
        if not isinstance(value, dict) or "get_resource" not in value
    }
    return [fault.message for fault in kind().validate_among("a", known, resources)]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (
            Listener,
            LISTENER,
            NO_CERTIFICATE,
        ),
        (Listener, {**LISTENER, "default_tls_container_ref": {"get_resource": "c"}}, ""),
        (Listener, {**LISTENER, "protocol": "HTTP"}, ""),
        (
            Pool,
            {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"},
            "At least one of the following properties must be specified: listener, loadbalancer.",
        ),
        (Pool, {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "listener": {"get_resource": "l"}}, ""),
        (
            Pool,
            {**POOL, "session_persistence": {"type": "APP_COOKIE"}},
            "Property cookie_name is required when session_persistence type is set to APP_COOKIE.",
        ),
        (Pool, {**POOL, "session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"}}, ""),
        (
            Pool,
            {**POOL, "session_persistence": {"type": "SOURCE_IP", "cookie_name": "c"}},
            NO_COOKIE,
        ),
        (
            L7Policy,
            {"action": "REJECT", "redirect_url": "http://a"},
            NO_TARGET,
        ),
        (L7Policy, {"action": "REJECT"}, ""),
        (
            L7Policy,
            {"action": "REDIRECT_TO_POOL"},
            "Property redirect_pool is required when action type is set to REDIRECT_TO_POOL.",
        ),
        (L7Policy, {"action": "REDIRECT_TO_POOL", "redirect_pool": {"get_resource": "p"}}, ""),
        (
            L7Policy,
            {"action": "REDIRECT_TO_URL"},
            "Property redirect_url is required when action type is set to REDIRECT_TO_URL.",
        ),
        (
            L7Policy,
            {"action": "REDIRECT_TO_POOL", "redirect_pool": "p", "redirect_url": "http://a"},
            "redirect_url property should only be specified for action with value REDIRECT_TO_URL.",
        ),
        (
            L7Policy,
            {"action": "REDIRECT_TO_URL", "redirect_pool": "p", "redirect_url": "http://a"},
            "redirect_pool property should only be specified for action with value REDIRECT_TO_POOL.",
        ),
        (
            L7Rule,
            RULE,
            NO_KEY,
        ),
        (L7Rule, {**RULE, "key": "X"}, ""),
        (L7Rule, {**RULE, "type": "PATH"}, ""),
    ],
)
def test_rules(kind: type[ResourceType], given: dict[str, Any], expected: str):
    assert faults(kind, given) == ([expected] if expected else [])
