"""Types that are for admins are refused wherever a request names them, before anything else is said of it."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from orchestrator.config import Settings
from orchestrator.errors import Forbidden, InvalidTemplate
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.validation.request import validate_request
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller

VERSION: Final = {"heat_template_version": "2018-08-31"}
FLAVOR: Final = {"type": "OS::Nova::Flavor", "properties": {"ram": "much"}}
GROUP: Final = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": FLAVOR}}
INNER: Final = "heat_template_version: 2018-08-31\nresources: {f: {type: OS::Nova::Flavor}}"
ALIAS: Final = {"resource_registry": {"My::Size": "OS::Nova::Flavor"}}

REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "by its name": {"template": {"resources": {"a": FLAVOR}}},
    "beside what is wrong": {
        "template": {"resources": {"a": FLAVOR, "b": {"type": "OS::Heat::Value", "properties": {"x": 1}}}}
    },
    "in a group": {"template": {"resources": {"a": GROUP}}},
    "in a nested template": {
        "template": {"resources": {"a": {"type": "inner.yaml"}}},
        "files": {"inner.yaml": INNER},
    },
    "under another name": {"template": {"resources": {"a": {"type": "My::Size"}}}, "environment": ALIAS},
}


def check_allowed(role: str, template: dict[str, Any], **options: Any) -> None:
    nothing = cast(Any, None)  # is stored
    context = OperationContext(nothing, nothing, Caller("p", roles=(role,)), Settings(), load_registry())
    validate_request(context, StackRequest({**VERSION, **template}, "s", **options), stack_uuid="None")


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=list(REQUESTS))
def test_a_member_is_refused_and_an_admin_gets_the_full_list(request_: dict[str, Any]) -> None:
    with pytest.raises(Forbidden, match=r"^You are not authorized to use resource_types:OS::Nova::Flavor\.$"):
        check_allowed("member", **request_)
    with pytest.raises(InvalidTemplate):  # the service is not there
        check_allowed("admin", **request_)


def test_a_type_that_no_rule_names_is_anybodys() -> None:
    check_allowed("member", {"resources": {"a": {"type": "OS::Heat::RandomString"}}})
