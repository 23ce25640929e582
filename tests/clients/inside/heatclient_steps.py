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
    told: dict[str, Any] = {}
    files, body = template_utils.get_template_contents(template)
    fields = {"stack_name": "one", "template": body, "files": dict(files)}
    told["preview"] = sorted(heat.stacks.preview(**fields).to_dict())
    made = heat.stacks.create(**fields, parameters={"value": "first"}, tags="red,blue")["stack"]
    told["identifier"] = _until(heat, "one", "CREATE_COMPLETE").identifier == f"one/{made['id']}"
    told["by id"] = heat.stacks.get(made["id"]).stack_name
    told["first page"] = [one.stack_name for one in heat.stacks.list(limit=1)]
    told["filtered"] = [one.id for one in heat.stacks.list(filters={"name": "none of that name"})]
    told["tagged"] = [one.stack_name for one in heat.stacks.list(tags="blue")]
    heat.stacks.update("one", existing=True, parameters={"value": "second"})
    stack = _until(heat, "one", "UPDATE_COMPLETE")
    told["outputs"] = stack.outputs
    told["output list"] = heat.stacks.output_list("one")
    told["output"] = heat.stacks.output_show("one", "it")
    told["template"] = heat.stacks.template("one")["description"]
    told["environment"] = heat.stacks.environment("one")["parameters"]
    told["files"] = heat.stacks.files("one")
    told["resources"] = [one.resource_name for one in heat.resources.list("one", nested_depth=2)]
    told["resource"] = heat.resources.get("one", "second", with_attr=["output"]).attributes
    told["metadata"] = heat.resources.metadata("one", "second")
    told["generated"] = heat.resource_types.generate_template("OS::Heat::Value", "hot")["resources"]
    told["types"] = [one.resource_type for one in heat.resource_types.list(filters={"name": "OS::Heat::V"})]
    told["events"] = [one.resource_name for one in heat.events.list("one", resource_name="second", limit=1)]
    told["snapshot"] = heat.stacks.snapshot("one", "kept")["name"]
    _until(heat, "one", "SNAPSHOT_COMPLETE")
    heat.actions.check("one")
    _until(heat, "one", "CHECK_COMPLETE")
    told["validated"] = heat.stacks.validate(template=body, show_nested=True)["Description"]
    told["build"] = heat.build_info.build_info()
    told["services"] = {one.binary for one in heat.services.list()}
    told["versions"] = len(list(heat.template_versions.list()))
    heat.stacks.delete("one")
    told["gone"] = _until(heat, made["id"], "DELETE_COMPLETE").stack_name
    for name, call in {
        "missing": lambda: heat.stacks.get("one"),
        "refused": lambda: heat.stacks.create(**fields | {"stack_name": "1 2"}),
        "conflict": lambda: heat.stacks.create(**fields) and heat.stacks.create(**fields),
    }.items():
        try:
            call()
        except exc.HTTPException as refused:
            told[name] = (refused.code, str(refused))
    heat.stacks.delete("one")
    return told


def _until(heat: Any, name: str, status: str) -> Any:
    deadline = time.monotonic() + 120
    while (stack := heat.stacks.get(name)).stack_status != status:
        assert "FAILED" not in stack.stack_status, stack
        assert time.monotonic() < deadline, stack.stack_status
        time.sleep(0.1)
    return stack
