"""Runs in the clients' environment: python-heatclient's own API, as scripts and other projects use it."""

from __future__ import annotations

import time
from typing import Any

from heatclient import client, exc
from heatclient.common import template_utils
from keystoneauth1 import noauth, session


def main(endpoint: str, template: str, legacy: bool) -> dict[str, Any]:
    """Return the result of each call by name; `legacy` is the client without a session."""
    if legacy:
        heat = client.Client("1", endpoint=endpoint, token="none needed", username="me", password="mine")
    else:
        asking = session.Session(noauth.NoAuth())
        heat = client.Client("1", session=asking, endpoint_override=endpoint)
    reported: dict[str, Any] = {}
    files, body = template_utils.get_template_contents(template)
    fields = {"stack_name": "one", "template": body, "files": dict(files)}
    reported["preview"] = sorted(heat.stacks.preview(**fields).to_dict())
    made = heat.stacks.create(**fields, parameters={"value": "first"}, tags="red,blue")["stack"]
    reported["identifier"] = _until(heat, "one", "CREATE_COMPLETE").identifier == f"one/{made['id']}"
    reported["by id"] = heat.stacks.get(made["id"]).stack_name
    reported["first page"] = [item.stack_name for item in heat.stacks.list(limit=1)]
    reported["filtered"] = [item.id for item in heat.stacks.list(filters={"name": "none of that name"})]
    reported["tagged"] = [item.stack_name for item in heat.stacks.list(tags="blue")]
    heat.stacks.update("one", existing=True, parameters={"value": "second"})
    stack = _until(heat, "one", "UPDATE_COMPLETE")
    reported["outputs"] = stack.outputs
    reported["output list"] = heat.stacks.output_list("one")
    reported["output"] = heat.stacks.output_show("one", "it")
    reported["template"] = heat.stacks.template("one")["description"]
    reported["environment"] = heat.stacks.environment("one")["parameters"]
    reported["files"] = heat.stacks.files("one")
    reported["resources"] = [item.resource_name for item in heat.resources.list("one", nested_depth=2)]
    reported["resource"] = heat.resources.get("one", "second", with_attr=["output"]).attributes
    reported["metadata"] = heat.resources.metadata("one", "second")
    reported["generated"] = heat.resource_types.generate_template("OS::Heat::Value", "hot")["resources"]
    reported["types"] = [
        item.resource_type for item in heat.resource_types.list(filters={"name": "OS::Heat::V"})
    ]
    reported["events"] = [
        item.resource_name for item in heat.events.list("one", resource_name="second", limit=1)
    ]
    reported["snapshot"] = heat.stacks.snapshot("one", "kept")["name"]
    _until(heat, "one", "SNAPSHOT_COMPLETE")
    heat.actions.check("one")
    _until(heat, "one", "CHECK_COMPLETE")
    reported["validated"] = heat.stacks.validate(template=body, show_nested=True)["Description"]
    reported["build"] = heat.build_info.build_info()
    reported["services"] = {item.binary for item in heat.services.list()}
    reported["versions"] = len(list(heat.template_versions.list()))
    heat.stacks.delete("one")
    reported["gone"] = _until(heat, made["id"], "DELETE_COMPLETE").stack_name
    for name, call in {
        "missing": lambda: heat.stacks.get("one"),
        "refused": lambda: heat.stacks.create(**fields | {"stack_name": "1 2"}),
        "conflict": lambda: heat.stacks.create(**fields) and heat.stacks.create(**fields),
    }.items():
        try:
            call()
        except exc.HTTPException as refused:
            reported[name] = (refused.code, str(refused))
    heat.stacks.delete("one")
    return reported


def _until(heat: Any, name: str, status: str) -> Any:
    deadline = time.monotonic() + 120
    while (stack := heat.stacks.get(name)).stack_status != status:
        assert "FAILED" not in stack.stack_status, stack
        assert time.monotonic() < deadline, stack.stack_status
        time.sleep(0.1)
    return stack
