"""Behaviour of each type of software configuration, beyond the common contract."""

from __future__ import annotations

import email
from dataclasses import replace
from typing import Any

import pytest
import yaml

from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import ProviderError
from orchestrator.resources.base import ResourceType
from orchestrator.resources.builtin.cloud_config import CloudConfig
from orchestrator.resources.builtin.deployed_server import DeployedServer
from orchestrator.resources.builtin.multipart_mime import MultipartMime
from orchestrator.resources.builtin.software_component import SoftwareComponent
from orchestrator.resources.builtin.software_config import SoftwareConfig
from orchestrator.resources.builtin.software_deployment import SoftwareDeployment
from orchestrator.resources.builtin.structured_config import StructuredConfig
from orchestrator.resources.software_api import ConfigDraft
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Sample
from tests.contract.software_memory import SoftwareMemory


def resource_of(
    resource_type: type[ResourceType], properties: dict[str, Any], store: SoftwareMemory | None = None
) -> Operated:
    has = SoftwareMemory() if store is None else store
    return Operated(
        resource_type(),
        properties,
        Sample(resource_type.name, prepare_context=lambda ctx: replace(ctx, software=has)),
    )


def made(
    resource_type: type[ResourceType], store: SoftwareMemory | None = None, **properties: Any
) -> Operated:
    resource = resource_of(resource_type, properties, store)
    resource.create()
    return resource


def store_of(resource: Operated) -> SoftwareMemory:
    store = resource.ctx.software
    assert isinstance(store, SoftwareMemory)
    return store


def draft(resource: Operated) -> ConfigDraft:
    result = store_of(resource).config(resource.physical_id)
    assert result is not None
    return result.draft


class TestConfigs:
    def test_it_is_stored_under_its_physical_name(self):
        resource = made(SoftwareConfig, config="echo", inputs=[{"name": "a"}], options={"b": 1})
        assert draft(resource) == ConfigDraft(
            resource.ctx.physical_name,
            "Heat::Ungrouped",
            "echo",
            [{"name": "a", "type": "String"}],
            [],
            {"b": 1},
        )
        assert resource.observe().attributes == {"config": "echo"}

    def test_any_change_makes_another(self):
        for name in SoftwareConfig.properties:
            assert SoftwareConfig().change({name: 1}, {name: 2}, frozenset({name})) == "replace"

    def test_a_deployed_config_is_not_deleted(self):
        resource = made(SoftwareConfig, config="echo")
        deployed = made(SoftwareDeployment, store_of(resource), server="m", signal_transport="NO_SIGNAL")
        resource.physical_id = store_of(resource).deployments[deployed.physical_id].config_id
        with pytest.raises(ProviderError) as caught:
            resource.delete()
        assert caught.value.kind == "InvalidRestrictedAction"

    def test_a_secret_attribute_is_marked_secret(self):
        resource = resource_of(SoftwareConfig, {"config": "hush"})
        resource.ctx = replace(resource.ctx, secret=True)
        resource.create()
        assert store_of(resource).secrets == [resource.physical_id]

    def test_a_structured_parameter_is_a_map(self):
        assert made(StructuredConfig, config={"a": [1]}).observe().attributes == {"config": {"a": [1]}}

    def test_a_component_has_a_config_for_each_action(self):
        configs = [{"tool": "script", "config": "x"}, {"tool": "script", "actions": ["DELETE", "OWN"]}]
        resource = made(SoftwareComponent, configs=configs)
        assert draft(resource).group == "component"
        shown = resource.observe().attributes["configs"]
        assert [item["actions"] for item in shown] == [["CREATE", "UPDATE"], ["DELETE", "OWN"]]

    def test_two_configs_for_an_action_are_refused(self):
        configs = [{"tool": "a"}, {"tool": "b", "actions": ["UPDATE", "DELETE"]}]
        resource = resource_of(SoftwareComponent, {"configs": configs})
        [fault] = resource.kind.validate(resource.ctx.properties, 3600.0)
        assert fault.property == "configs"
        assert "more than one configuration for the same action" in fault.message

    @pytest.mark.parametrize("configs", [[], [{"config": "x"}], [{"tool": "a", "actions": []}]])
    def test_a_component_of_nothing_is_refused(self, configs: Any):
        assert SoftwareComponent().read_properties({"configs": configs})[1] != []

    @pytest.mark.parametrize("config", [{"packages": ["a"], "text": "x: é\n", "b": {"c": None}}, {}])
    def test_cloud_config_is_yaml_under_its_header(self, config: Any):
        text = draft(made(CloudConfig, cloud_config=config)).config
        head, _, rest = text.partition("\n")
        assert head == "#cloud-config"
        assert yaml.safe_load(rest) == config


class TestMultipartMime:
    def parts(self, resource: Operated) -> list[tuple[str, str | None, str]]:
        message = email.message_from_string(draft(resource).config)
        assert message.is_multipart()
        result = []
        for part in message.get_payload():
            content = part.get_payload(decode=True).decode(part.get_content_charset())
            result.append((part.get_content_type(), part.get_filename(), content))
        return result

    def test_parts_are_texts_or_configs(self):
        store = SoftwareMemory()
        script = made(SoftwareConfig, store, config="#!/bin/sh")
        tree = made(StructuredConfig, store, config={"a": 1})
        tree.ctx = replace(tree.ctx, token="another")
        tree.create()
        nowhere = "9c9f2c2e-7a0c-4f57-9d39-9e3b5b6c7d8e"
        parts = [
            {"config": script.physical_id, "subtype": "x-shellscript"},
            {"config": "plain"},
            {"config": tree.physical_id, "filename": "part-handler.py"},
            {"config": nowhere},
            {"config": "grüße", "filename": "a.txt", "subtype": "html"},
        ]
        assert self.parts(made(MultipartMime, store, parts=parts)) == [
            ("text/x-shellscript", None, "#!/bin/sh"),
            ("text/plain", None, "plain"),
            ("text/part-handler", "part-handler.py", '{"a":1}'),
            ("text/plain", None, nowhere),
            ("text/html", "a.txt", "grüße"),
        ]

    def test_a_multipart_part_is_taken_apart(self):
        store = SoftwareMemory()
        inner = made(MultipartMime, store, parts=[{"config": "eins"}, {"config": "zwö", "filename": "b.sh"}])
        parts = [{"config": inner.physical_id, "type": "multipart"}]
        outer = resource_of(MultipartMime, {"parts": parts}, store)
        outer.create()
        assert self.parts(outer) == [("text/plain", None, "eins"), ("text/b", "b.sh", "zwö")]

    def test_a_multipart_part_that_is_none_gives_nothing(self):
        assert self.parts(
            made(MultipartMime, parts=[{"config": "x", "type": "multipart"}, {"config": "y"}])
        ) == [("text/plain", None, "y")]

    def test_every_try_makes_the_same_message(self):
        resource = made(MultipartMime, parts=[{"config": "x"}])
        before = draft(resource)
        store_of(resource).configs.clear()
        resource.create()
        assert draft(resource) == before


class TestDeployments:
    def test_transports_of_services_that_are_not_there_are_refused(self):
        ctx = resource_of(SoftwareDeployment, {"server": "m"}).ctx
        [fault] = SoftwareDeployment().validate({"signal_transport": "ZAQAR_SIGNAL"}, 3600.0)
        assert (fault.property, fault.message) == ("signal_transport", "ZAQAR_SIGNAL is not supported here.")
        [fault] = SoftwareDeployment().inquire(ctx, {"signal_transport": "TEMP_URL_SIGNAL"})
        assert fault.property == "signal_transport"
        assert fault.message == "TEMP_URL_SIGNAL requires an object store, and the cloud has none."

    def test_a_second_try_publishes_nothing_new(self):
        resource = made(SoftwareDeployment, server="m")
        before = dict(store_of(resource).deployments)
        resource.create()
        assert store_of(resource).deployments == before

    def test_the_blockers_are_reported(self):
        observed = made(SoftwareDeployment, server="m").observe()
        assert (observed.ready, observed.retry_after) == (False, None)
        assert observed.reason == "Deploy data available: the agent on m has not signalled yet"

    def test_an_external_deletion_during_a_create_is_an_error(self):
        resource = made(SoftwareDeployment, server="m")
        store_of(resource).deployments.clear()
        assert resource.observe().error == f"Deployment with id {resource.physical_id} not found"
        resource.delete()
        assert not resource.observe().exists

    def test_the_transport_says_how_the_agent_reaches_us(self):
        def inputs(transport: str) -> dict[str, Any]:
            resource = made(SoftwareDeployment, server="m", signal_transport=transport)
            [item] = store_of(resource).deployments.values()
            return {i["name"]: i["value"] for i in store_of(resource).configs[item.config_id].draft.inputs}

        always = {
            "deploy_server_id",
            "deploy_action",
            "deploy_stack_id",
            "deploy_resource_name",
            "deploy_signal_transport",
        }
        assert inputs("NO_SIGNAL").keys() == always
        assert inputs("CFN_SIGNAL").keys() == always | {"deploy_signal_id", "deploy_signal_verb"}
        heat = inputs("HEAT_SIGNAL")
        keywords = ("auth_url", "username", "user_id", "password", "project_id")
        assert heat.keys() == always | {f"deploy_{keyword}" for keyword in keywords}
        assert heat["deploy_project_id"] == "p1"
        assert heat["deploy_password"]

    @pytest.mark.parametrize(
        ("server", "properties", "refused"),
        [
            ("OS::Nova::Server", {}, True),
            ("OS::Nova::Server", {"user_data_format": "RAW"}, True),
            ("OS::Nova::Server", {"user_data_format": "SOFTWARE_CONFIG"}, False),
            ("OS::Nova::Server", {"user_data_format": {"get_param": "format"}}, False),
            ("OS::Heat::DeployedServer", {}, False),
            ("my_server.yaml", {"user_data_format": "HEAT_CFNTOOLS"}, True),
        ],
    )
    def test_a_sibling_server_must_exist_for_it(self, server: str, properties: Any, refused: bool):
        resources = {
            "dep": {"type": SoftwareDeployment.name, "properties": {"server": {"get_resource": "web"}}},
            "web": {"type": server, "properties": properties},
        }
        parameters = {"format": {"type": "string", "default": "RAW"}}
        template = {"heat_template_version": "2021-04-16", "parameters": parameters, "resources": resources}
        faults = SoftwareDeployment().validate_among("dep", {}, load(template, Limits()).resources)
        assert [fault.message for fault in faults] == refused * [
            "Resource web's property user_data_format should be set to SOFTWARE_CONFIG since there are "
            "software deployments on it."
        ]

    def test_its_credentials_go_with_it(self):
        resource = made(SoftwareDeployment, server="m")
        assert store_of(resource).agents
        store_of(resource).signal(resource.physical_id, {})
        resource.delete()
        assert store_of(resource).agents == {}
        assert store_of(resource).configs == {}


class TestServers:
    def test_its_metadata_tell_the_agent_where_to_poll(self):
        resource = made(DeployedServer, name="web", software_config_transport="POLL_SERVER_HEAT")
        assert resource.observe().attributes["name"] == "web"
        supplied = {"os-collect-config": {"request": {"metadata_url": "x"}}, "rack": 7}
        ctx = replace(resource.ctx, metadata=supplied)
        result = DeployedServer().published(ctx, resource.physical_id)
        settings = result["os-collect-config"]
        assert settings["request"] == {"metadata_url": "x"}
        assert settings["collectors"] == ["heat", "local"]
        assert settings["heat"]["resource_name"] == "a"
        assert settings["heat"]["stack_id"] == store_of(resource).place.stack_path
        assert result["deployments"] == []

    def test_another_transport_is_reported_at_once(self):
        resource = made(DeployedServer)
        assert resource.observe().attributes["os_collect_config"]["collectors"] == ["cfn", "local"]
        resource.update(software_config_transport="POLL_SERVER_HEAT")
        assert resource.observe().attributes["os_collect_config"]["collectors"] == ["heat", "local"]

    def test_an_unnamed_snapshot_gets_a_short_name(self):
        resource = resource_of(DeployedServer, {})
        name = physical_name("stack", "x" * 60, resource.ctx.token, DeployedServer.physical_name_limit)
        resource.ctx = replace(resource.ctx, physical_name=name)
        resource.create()
        name = resource.observe().attributes["name"]
        assert len(name) == 53
        assert name.startswith("st-x")

    def test_transports_of_services_that_are_not_there_are_refused(self):
        ctx = resource_of(DeployedServer, {}).ctx
        [fault] = DeployedServer().validate({"software_config_transport": "ZAQAR_MESSAGE"}, 3600.0)
        assert fault.message == "ZAQAR_MESSAGE is not supported here."
        [fault] = DeployedServer().inquire(ctx, {"software_config_transport": "POLL_TEMP_URL"})
        assert fault.message == "POLL_TEMP_URL requires an object store, and the cloud has none."

    def test_the_ignored_property_is_deprecated(self):
        assert DeployedServer.properties["metadata"].deprecated == "This property will be ignored"
