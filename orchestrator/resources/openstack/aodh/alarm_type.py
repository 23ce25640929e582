"""The common verbs of Aodh's types: an alarm with actions and a rule.

An alarm is named after the resource, and the name finds the alarm of a create request without an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from orchestrator.clients.openstack.platform_services.alarming import Alarming
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, ResourceType, Value
from orchestrator.resources.openstack.aodh.alarm_properties import ACTIONS
from orchestrator.resources.openstack.connection import openstack
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.parameters import MASK

SIGNATURE: Final = "Signature"  # the part of a signed URL that permits the call
SIMPLE: Final = ("description", "enabled", "repeat_actions", "severity", "time_constraints")


class AlarmType(ResourceType):
    """An alarm. Aodh's requests take effect before they are answered."""

    service = "aodh"
    endpoint_type = "alarming"
    live_show = True

    alarm_type: ClassVar[str]
    rule_properties: ClassVar[tuple[str, ...]] = ()  # that are parts of the rule under the same name

    def rule(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the rule of the alarm."""
        return {name: props[name] for name in self.rule_properties if props.get(name) is not None}

    @property
    def rule_key(self) -> str:
        """The name of the rule in the alarm."""
        return f"{self.alarm_type}_rule"

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require URLs as actions, not names of resources."""
        return named_actions(ACTIONS, properties, resources)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the alarm."""
        return Created(_aodh(ctx).create_alarm(self._body(ctx, props))["alarm_id"])

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the alarms with the name, which is unique."""
        return _aodh(ctx).alarm_ids_named(ctx.physical_name) or None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the alarm."""
        alarm = _aodh(ctx).alarm(physical_id)
        if alarm is None:
            return Observation(exists=False)
        seen = Observation(exists=True, properties=self._observed(ctx.properties, alarm))
        expected = {"SUSPEND": False, "RESUME": ctx.properties.get("enabled", True)}.get(ctx.action)
        if expected is not None and alarm.get("enabled") is not expected:
            return replace(seen, ready=False, retry_after=1.0, reason=f"enabled is not {expected}")
        return seen

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Replace the alarm, and keep its state."""
        self._replace(ctx, physical_id, self._body(ctx, props))
        return Created(physical_id)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Disable the alarm."""
        self._replace(ctx, physical_id, self._body(ctx, ctx.properties) | {"enabled": False})

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Enable the alarm, unless the template disables it."""
        self._replace(ctx, physical_id, self._body(ctx, ctx.properties))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the alarm."""
        _aodh(ctx).delete_alarm(physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the alarm as `show`; the signatures of its URLs are masked."""
        alarm = _aodh(ctx).alarm(physical_id) or {}
        masked = {name: [_masked(url) for url in alarm[name] or ()] for name in ACTIONS if name in alarm}
        return {"show": {**alarm, **masked}}

    def _replace(self, ctx: Context, physical_id: str, body: JsonObject) -> None:
        aodh = _aodh(ctx)
        alarm = aodh.alarm(physical_id) or {}
        state = {"state": alarm["state"]} if alarm.get("state") else {}
        aodh.replace_alarm(physical_id, {**body, **state})

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

    def _observed(self, props: Mapping[str, Value], alarm: JsonMapping) -> JsonObject:
        """Return the actual values of given properties; those that Aodh completes are equal to the desired
        values.
        """
        values: JsonObject = {}
        for name in SIMPLE:
            if props.get(name) not in (None, ""):
                values[name] = props[name] if covers(alarm.get(name), props[name]) else alarm.get(name)
        for name, queues in ACTIONS.items():
            actual, own = alarm.get(name) or (), _queue_urls(props, queues)
            if name in props or actual:
                same = set(actual) == set(_urls(props, name))
                values[name] = props.get(name) if same else [url for url in actual if url not in own]
        return values | self.observed_rule(props, alarm.get(self.rule_key) or {})

    def observed_rule(self, props: Mapping[str, Value], rule: JsonMapping) -> JsonObject:
        """Return the actual values of the properties in the rule."""
        return {
            name: props[name] if covers(rule.get(name), props[name]) else rule.get(name)
            for name in self.rule_properties
            if props.get(name) is not None
        }


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


def _aodh(ctx: Context) -> Alarming:
    return openstack(ctx).alarming
