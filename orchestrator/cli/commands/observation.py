"""`orchestrator observation …`: policies, pauses and maintenance windows."""

from __future__ import annotations

import datetime as dt
import re

import click

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render
from orchestrator.json_types import JsonMapping, JsonObject

STACK = click.argument("stack", required=False)
RESOURCE = click.option(
    "--resource", metavar="PATH", help="Only this resource; in nested stacks with dots: group.0.server."
)
TYPE = click.option("--type", "type_", metavar="TYPE", help="Only resources of this type.")
NAME = click.option("--name", help="Name to which environments refer: observation_policy.")
UNITS = {"m": 60, "h": 3_600, "d": 86_400}


@click.group(cls=LazyGroup, entries={})
def observation() -> None:
    """Manage policies and pauses of the observation."""


@observation.group(cls=LazyGroup, entries={})
def policy() -> None:
    """Show and set what happens after a difference was found.

    The modes are off (nothing), report (verdicts only, the default), heal (repair) and ask (repair after an
    approval). The most specific policy applies: of a resource, a type in a stack, a type, a stack, the
    project.
    """


@policy.command()
@STACK
@RESOURCE
@click.option("--history", is_flag=True, help="Also show policies that were removed or replaced.")
@client_command
def show(session: Session, *, stack: str | None, resource: str | None, history: bool) -> None:
    """Show what applies to STACK or a resource in it; without STACK, list all policies and pauses."""
    if stack is not None and not history:
        found = session.client.observation_policies.effective(stack, resource)
        if session.as_json:
            session.document(found)
        else:
            _show_effective(session, found)
        return
    query = {"history": "true"} if history else {}
    rules = session.client.observation_policies.list_all(query | ({"stack": stack} if stack else {}))
    if session.as_json:
        session.document({"observation_policies": rules})
    elif rules or session.quiet:
        render.table(
            session.out(),
            ("KIND", "OBJECT", "MODE", "UNTIL", "BY", "REASON"),
            [
                (
                    rule["kind"], _object(rule), rule["mode"] or rule["repeats"] or "",
                    render.time(rule["ended_at"] or rule["until"]), rule["created_by"] or "",
                    rule["reason"] or "",
                )
                for rule in rules
            ],
        )  # fmt: skip
    else:
        session.say(f"Project {session.project} has no policies: differences are reported.")


@policy.command("set")
@click.argument("mode", type=click.Choice(["off", "report", "heal", "ask"]))
@STACK
@TYPE
@RESOURCE
@NAME
@click.option(
    "--interval", type=float, metavar="SECONDS", help="Longest time between two observations of the object."
)
@click.option("--reason", help="Reason, shown in the history.")
@client_command
def set_policy(
    session: Session,
    *,
    mode: str,
    stack: str | None,
    type_: str | None,
    resource: str | None,
    name: str | None,
    interval: float | None,
    reason: str | None,
) -> None:
    """Set the policy MODE of STACK, of a type or of a resource; without STACK, of the project.

    With --name it applies to the stacks whose environment refers to it: `observation_policy: NAME`.
    """
    given: JsonObject = {"kind": "policy", "mode": mode, "reason": reason}
    given |= _target(stack, type_, resource, name)
    if interval is not None:
        given["interval"] = interval
    _created(session, given, lambda rule: f"The policy of {_object(rule)} is {mode}.")


@policy.command()
@STACK
@TYPE
@RESOURCE
@NAME
@client_command
def unset(
    session: Session, *, stack: str | None, type_: str | None, resource: str | None, name: str | None
) -> None:
    """Remove the policy of exactly this object; the next less specific one applies."""
    _end(session, "policy", _target(stack, type_, resource, name))


@observation.command()
@STACK
@RESOURCE
@click.option("--reason", required=True, help="Reason, shown in every status.")
@click.option("--for", "duration", metavar="DURATION", help="Length: 30m, 4h, 2d.")
@click.option("--from", "starts_at", metavar="TIME", help="Start.  [default: now]")
@click.option("--until", metavar="TIME", help="End, such as 2026-01-31T12:00:00Z.")
@click.option("--repeat", type=click.Choice(["daily", "weekly"]), help="Repeat as a maintenance window.")
@client_command
def pause(
    session: Session,
    *,
    stack: str | None,
    resource: str | None,
    reason: str,
    duration: str | None,
    starts_at: str | None,
    until: str | None,
    repeat: str | None,
) -> None:
    """Pause all repairs of STACK, or of a resource; without STACK, of the project.

    A pause always ends, by --until or --for.
    """
    if (duration is None) == (until is None):
        raise click.UsageError("Give one of --until and --for: every pause ends.")
    if duration is not None:
        until = _end_of(starts_at, duration)
    given = {
        "kind": "pause", "reason": reason, "starts_at": starts_at, "until": until, "repeats": repeat,
        **_target(stack, None, resource),
    }  # fmt: skip
    _created(
        session, given, lambda rule: f"Repairs of {_object(rule)} pause until {render.time(rule['until'])}."
    )


@observation.command()
@STACK
@RESOURCE
@client_command
def resume(session: Session, *, stack: str | None, resource: str | None) -> None:
    """End the pauses and maintenance windows of exactly this object."""
    _end(session, "pause", _target(stack, None, resource))


def _target(
    stack: str | None, type_: str | None, resource: str | None, name: str | None = None
) -> dict[str, str | None]:
    if resource is not None and stack is None:
        raise click.UsageError("A resource needs its STACK.")
    if name is not None and (stack, type_, resource) != (None, None, None):
        raise click.UsageError("--name has no effect with another object.")
    return {"stack": stack, "type": type_, "resource": resource, "name": name}


def _created(session: Session, given: JsonMapping, text: object) -> None:
    rule = session.client.observation_policies.create(
        {key: value for key, value in given.items() if value is not None}
    )
    if session.as_json:
        session.document(rule)
    else:
        session.say(text(rule))  # type: ignore[operator]


def _end(session: Session, kind: str, target: JsonMapping) -> None:
    stack = target["stack"]
    query = {"kind": kind} | ({"stack": stack} if stack else {})
    found = [
        rule
        for rule in session.client.observation_policies.list_all(query)
        if (rule["stack_id"] is not None) == (stack is not None)
        and (rule["type"], rule["resource"], rule.get("name"))
        == (target["type"], target["resource"], target["name"])
    ]
    if not found:
        raise Failure(f"there is no {kind} of exactly this object")
    for rule in found:
        session.client.observation_policies.delete(rule["id"])
    if session.as_json:
        session.document({"ended": [rule["id"] for rule in found]})
    else:
        session.say(f"The {kind} of {_object(found[0])} has ended.")


def _object(rule: JsonMapping) -> str:
    if rule.get("name"):
        return f"environments with {rule['name']}"
    where = rule["path"] or rule["resource"] or rule["type"] or ""
    stack = rule["stack_name"] or "the project"
    return f"{where} in {stack}" if where else stack


def _show_effective(session: Session, found: JsonObject) -> None:
    rule, paused = found["policy"], found["pause"]
    pairs = [
        ("mode", found["mode"]),
        ("policy of", _object(rule) if rule else "none: this is the default"),
        ("set by", (rule["created_by"] or "") if rule else ""),
        ("paused until", render.time(paused["until"]) if paused else ""),
        ("pause reason", paused["reason"] if paused else ""),
    ]
    render.facts(session.out(), pairs)


def _end_of(starts_at: str | None, duration: str) -> str:
    amount = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", duration)
    if amount is None:
        raise click.UsageError(f"{duration!r} is not a duration such as 30m, 4h or 2d.")
    try:
        start = dt.datetime.fromisoformat(starts_at) if starts_at else dt.datetime.now(dt.UTC)
    except ValueError:
        raise click.UsageError(f"{starts_at!r} is not a time such as 2026-01-31T12:00:00Z.") from None
    start = start if start.tzinfo else start.replace(tzinfo=dt.UTC)
    end = start + dt.timedelta(seconds=int(amount[1]) * UNITS[amount[2]])
    return end.astimezone(dt.UTC).isoformat()[:19] + "Z"
