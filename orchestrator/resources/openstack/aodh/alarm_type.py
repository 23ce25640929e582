"""The common verbs of Aodh's types: an alarm with actions and a rule.

An alarm is named after the resource, and the name finds the alarm of a create request without an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from orchestrator.clients.openstack.platform_services.alarming import ALARMS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Fault, Observation, Value
from orchestrator.resources.openstack.aodh.alarm_properties import ACTIONS
from orchestrator.resources.openstack.collection_type import CollectionType
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.parameters import MASK

SIGNATURE: Final = "Signature"  # the part of a signed URL that permits the call
SIMPLE: Final = ("description", "enabled", "repeat_actions", "severity", "time_constraints")


class AlarmType(CollectionType):
    """An alarm. Aodh's requests take effect before they are answered."""

    service = "aodh"
    endpoint_type = "alarming"
    collection = ALARMS

    alarm_type: ClassVar[str]
    rule_properties: ClassVar[tuple[str, ...]] = ()  # that are parts of the rule under the same name

    def rule(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the rule of the alarm."""
        given = [name for name in self.rule_properties if props.get(name) is not None]
        fields = {name: self.layout[name] for name in given}
        values = {field.key: field.to_api(props[name]) for name, field in fields.items()}
        return {key: value for key, value in values.items() if value is not None}

    @property
    def rule_key(self) -> str:
        """The name of the rule in the alarm."""
        return f"{self.alarm_type}_rule"

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require URLs as actions, not names of resources."""
        return named_actions(ACTIONS, properties, resources)

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the alarms with the name, which is unique."""
        found = self.api(ctx).search(ALARMS, name=ctx.physical_name)
        return [str(alarm["alarm_id"]) for alarm in found] or None

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Return the observation of an alarm, which is suspended while it is disabled."""
        seen = super().observation(ctx, actual)
        expected = {"SUSPEND": False, "RESUME": ctx.properties.get("enabled", True)}.get(ctx.action)
        if expected is not None and actual.get("enabled") is not expected:
            return replace(seen, ready=False, retry_after=1.0, reason=f"enabled is not {expected}")
        return seen

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the alarm of the template."""
        return self._body(ctx, props)

    def changed_values(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> JsonObject:
        """Return the whole alarm, which keeps its state."""
        alarm = self.api(ctx).find(ALARMS, physical_id) or {}
        state = {"state": alarm["state"]} if alarm.get("state") else {}
        return {**self._body(ctx, props), **state}

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Disable the alarm."""
        values = self.changed_values(ctx, physical_id, ctx.properties, frozenset())
        self.send_update(ctx, physical_id, {**values, "enabled": False})

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Enable the alarm, unless the template disables it."""
        self.update(ctx, physical_id, ctx.properties, frozenset())

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return the alarm as `show`; the signatures of its URLs are masked."""
        masked = {name: [_masked(url) for url in actual[name] or ()] for name in ACTIONS if name in actual}
        return {**actual, **masked}

    def _body(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the alarm of the template."""
        values = {name: props[name] for name in SIMPLE if props.get(name) not in (None, "")}
        if "time_constraints" in values:
            values["time_constraints"] = [
                {key: value for key, value in one.items() if value is not None}
                for one in values["time_constraints"]
            ]
        actions = {name: _urls(props, name) for name in ACTIONS}
        head = {"name": ctx.physical_name, "type": self.alarm_type}
        return {**head, **values, **actions, self.rule_key: self.rule(props)}

    def actual_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the actual values of given properties; those that Aodh completes are equal to the desired
        values.
        """
        props = ctx.properties
        values: JsonObject = {}
        for name in SIMPLE:
            if props.get(name) not in (None, ""):
                values[name] = props[name] if covers(actual.get(name), props[name]) else actual.get(name)
        for name, queues in ACTIONS.items():
            urls, own = actual.get(name) or (), _queue_urls(props, queues)
            if name in props or urls:
                same = set(urls) == set(_urls(props, name))
                values[name] = props.get(name) if same else [url for url in urls if url not in own]
        return values | self.observed_rule(props, actual.get(self.rule_key) or {})

    def observed_rule(self, props: Mapping[str, Value], rule: JsonMapping) -> JsonObject:
        """Return the actual values of the properties in the rule."""
        values: JsonObject = {}
        for name in self.rule_properties:
            field, given = self.layout[name], props.get(name)
            if given is None:
                continue
            actual = rule.get(field.key)
            same = field.satisfies(given, actual) if field.satisfies else covers(actual, given)
            values[name] = given if same else actual
        return values


def named_actions(
    actions: Iterable[str], properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
) -> Sequence[Fault]:
    """Return faults of actions that are names of resources of the template."""
    return [
        Fault(f"{action} is the name of a resource: use its attribute alarm_url or AlarmUrl", name)
        for name in actions
        for action in properties.get(name) or ()
        if isinstance(action, str) and action in resources
    ]


def covers(actual: Value, desired: Value) -> bool:
    """Return whether a value contains another: Aodh adds the defaults of omitted members."""
    if isinstance(desired, Mapping) and isinstance(actual, Mapping):
        return all(value is None or covers(actual.get(key), value) for key, value in desired.items())
    if isinstance(desired, list) and isinstance(actual, list):
        return len(actual) == len(desired) and all(map(covers, actual, desired))
    return bool(actual == desired)


def _urls(props: Mapping[str, Value], name: str) -> list[str]:
    """Return the URLs of the actions and of the queues."""
    given = [str(url) for url in props.get(name) or () if url]
    return [*given, *_queue_urls(props, ACTIONS[name])]


def _queue_urls(props: Mapping[str, Value], name: str) -> list[str]:
    return [f"trust+zaqar://?{urlencode({'queue_name': queue})}" for queue in props.get(name) or ()]


def _masked(url: str) -> str:
    """Return a URL without its signature."""
    parts = urlsplit(url)
    if SIGNATURE not in parts.query:
        return url
    pairs = [(key, MASK if key == SIGNATURE else value) for key, value in parse_qsl(parts.query)]
    return urlunsplit(parts._replace(query=urlencode(pairs, safe="*")))
