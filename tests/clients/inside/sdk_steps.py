"""Runs in the clients' environment: openstacksdk's two layers through a stack's life."""

from __future__ import annotations

from typing import Any

import openstack
from openstack import exceptions


def connect(endpoint: str) -> Any:
    """Return a connection as documented for a service without authentication."""
    return openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_type="none",
        auth={"endpoint": endpoint},
        orchestration_endpoint_override=endpoint,
        orchestration_api_version="1",  # with the address all there is to know: nothing is discovered
    )


def main(endpoint: str, template: str, environment: str) -> dict[str, Any]:
    """Return the result of each call by name."""
    cloud = connect(endpoint)
    try:
        return {**_proxy(cloud.orchestration, template), **_cloud(cloud, template, environment)}
    finally:
        cloud.close()


def _proxy(heat: Any, template: str) -> dict[str, Any]:
    reported: dict[str, Any] = {}
    body = heat.read_env_and_templates(template_file=template)
    reported["preview"] = heat.create_stack(preview=True, name="one", **body).to_dict()
    made = heat.create_stack(name="one", parameters={"value": "first"}, timeout_mins=10, **body)
    stack = heat.find_stack("one", ignore_missing=False)
    assert stack.id == made.id
    stack = heat.wait_for_status(stack, "CREATE_COMPLETE", failures=["CREATE_FAILED"], interval=1, wait=120)
    reported["created"] = stack.to_dict()
    reported["listed"] = [listed.name for listed in heat.stacks()]
    heat.update_stack(stack, parameters={"value": "second"}, **body)
    stack = heat.wait_for_status(
        heat.get_stack("one"), "UPDATE_COMPLETE", failures=["UPDATE_FAILED"], interval=1, wait=120
    )
    reported["updated"] = stack.to_dict()
    reported["template"] = heat.get_stack_template(stack).to_dict()
    reported["environment"] = heat.get_stack_environment(stack).to_dict()
    reported["files"] = heat.get_stack_files(stack)
    reported["resources"] = [
        (resource.name, resource.status, resource.resource_type, bool(resource.physical_resource_id))
        for resource in heat.resources(stack)
    ]
    reported["exported"] = heat.export_stack(stack)["name"]
    for act, ended in ("suspend", "SUSPEND"), ("resume", "RESUME"), ("check", "CHECK"):
        getattr(heat, f"{act}_stack")(stack)
        stack = heat.wait_for_status(heat.get_stack("one"), f"{ended}_COMPLETE", interval=1, wait=120)
    events = list(heat.stack_events(stack))
    reported["events"] = [(resource.resource_name, resource.resource_status) for resource in events]
    reported["validated"] = heat.validate_template(body["template"])["Parameters"]
    config = heat.create_software_config(name="greet", group="script", config="echo", inputs=[], outputs=[])
    deployed = heat.create_software_deployment(
        config_id=config.id, server_id="4f1b5c36-8d6d-4bb0-bd5f-1a0b4a4ff0a4", status="IN_PROGRESS"
    )
    heat.update_software_deployment(deployed, status="COMPLETE", status_reason="done")
    reported["deployment"] = heat.get_software_deployment(deployed.id).to_dict()
    reported["deployments"] = [resource.id == deployed.id for resource in heat.software_deployments()]
    heat.delete_software_deployment(deployed)
    heat.delete_software_config(config)
    reported["configs"] = [resource.id for resource in heat.software_configs()]
    heat.delete_stack(stack)
    heat.wait_for_delete(stack, interval=1, wait=120)
    reported["found"] = heat.find_stack("one")
    try:
        heat.delete_stack("one", ignore_missing=False)
    except exceptions.NotFoundException as refused:
        reported["missing"] = str(refused)
    return reported


def _cloud(cloud: Any, template: str, environment: str) -> dict[str, Any]:
    reported: dict[str, Any] = {}
    made = cloud.create_stack(
        "two", template_file=template, environment_files=[environment], wait=True, timeout=600, value="given"
    )
    reported["cloud made"] = (made.status, made.parameters["value"])
    updated = cloud.update_stack("two", template_file=template, wait=True, value="else", rollback=False)
    reported["cloud updated"] = (updated.status, updated.parameters["value"], updated.is_rollback_disabled)
    reported["cloud found"] = [search_stack.name for search_stack in cloud.search_stacks("two")]
    reported["cloud deleted"] = (cloud.delete_stack("two", wait=True), cloud.get_stack("two"))
    reported["cloud missing"] = cloud.delete_stack("two")
    return reported
