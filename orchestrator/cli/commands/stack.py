"""`orchestrator stack …`: make, watch, read and remove stacks, over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.client.api_client import StackId
from orchestrator.cli.exit_codes import ApiFailure, Exit, ExitOneOnUsageGroup, Failure
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import FILE, Session, client_command, request_options, wait_options
from orchestrator.cli.output import preview as plan_view
from orchestrator.cli.output import render
from orchestrator.cli.template_files.load import Source, read_template, request_body, texts
from orchestrator.cli.watch.follow import End, Event, follow, is_stack_event
from orchestrator.cli.watch.progress import counted, line
from orchestrator.cli.watch.wait import begun, conclude, failed, watch

ELSEWHERE: dict[str, str] = {  # commands in modules of their own
    "check": "orchestrator.cli.commands.stack_actions:check",
    "suspend": "orchestrator.cli.commands.stack_actions:suspend",
    "resume": "orchestrator.cli.commands.stack_actions:resume",
    "cancel": "orchestrator.cli.commands.stack_actions:cancel",
    "signal": "orchestrator.cli.commands.stack_resource:signal",
    "hooks": "orchestrator.cli.commands.stack_resource:hooks",
    "clear-hook": "orchestrator.cli.commands.stack_resource:clear_hook",
    "mark-unhealthy": "orchestrator.cli.commands.stack_resource:mark_unhealthy",
    "metadata": "orchestrator.cli.commands.stack_resource:metadata",
    "revisions": "orchestrator.cli.commands.stack_revisions:revisions",
    "revision": "orchestrator.cli.commands.stack_revisions:revision",
    "diff": "orchestrator.cli.commands.stack_diff:diff",
    "rollback": "orchestrator.cli.commands.stack_revisions:rollback",
    "failures": "orchestrator.cli.commands.stack_revisions:failures",
    "snapshot": "orchestrator.cli.commands.stack_snapshot:snapshot",
    "export": "orchestrator.cli.commands.stack_adoption:export",
    "abandon": "orchestrator.cli.commands.stack_adoption:abandon",
    "adopt": "orchestrator.cli.commands.stack_adoption:adopt",
}


class LazyStackGroup(LazyGroup, ExitOneOnUsageGroup):
    """The stack commands, some of them in modules of their own."""


@click.group(cls=LazyStackGroup, elsewhere=ELSEWHERE)
def stack() -> None:
    """Make, watch, read and remove stacks."""


@stack.command()
@click.argument("name")
@click.option("-t", "--template", "template_file", type=FILE, required=True, help="The template.")
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@request_options
@wait_options
@client_command
def create(
    session: Session,
    *,
    name: str,
    template_file: Path,
    preview: bool,
    environments: tuple[Path, ...],
    parameters: Mapping[str, Any],
    timeout_mins: int | None,
    tags: tuple[str, ...],
    rollback: bool | None,
    keep_going: bool | None,
    wait: bool,
    wait_timeout: float | None,
) -> None:
    """Make the stack NAME from a template.

    Exits 3 when the stack fails, 4 when --wait-timeout runs out first. With --preview nothing is made, and
    the exit code says whether it could be.
    """
    plan_view.refuse_waiting(preview=preview, wait=wait)
    source = read_template(template_file)
    body = request_body(
        source,
        environments,
        parameters,
        stack_name=name,
        timeout_mins=timeout_mins,
        tags=",".join(tags) or None,
        disable_rollback=None if rollback is None else not rollback,
        keep_going=keep_going,
    )
    try:
        if preview:
            plan_view.show(session, session.client.preview_create(body))
            return
        made = session.client.create(body)
    except ApiFailure as refusal:
        raise refusal.explained(template_file, source.text, texts(environments, body)) from refusal
    if wait:
        conclude(session, made, watch(session, made, "CREATE", None, wait_timeout, begins=False))
        return
    begun(
        session,
        made,
        f"Stack {name} ({made.id}) is being created.",
        f"Watch it with: orchestrator stack events {name} --follow",
    )


@stack.command()
@click.argument("name")
@click.option(
    "-t", "--template", "template_file", type=FILE, help="The template; may be left out with --existing."
)
@click.option("--existing", is_flag=True, help="Keep what is left out: template, environment, parameters.")
@click.option(
    "--clear-parameter", "cleared", multiple=True, metavar="NAME", help="With --existing; repeatable."
)
@click.option("--converge", is_flag=True, help="Look at what is really there, and put right what differs.")
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@request_options
@wait_options
@client_command
def update(
    session: Session,
    *,
    name: str,
    template_file: Path | None,
    environments: tuple[Path, ...],
    parameters: Mapping[str, Any],
    existing: bool,
    cleared: tuple[str, ...],
    converge: bool,
    preview: bool,
    timeout_mins: int | None,
    tags: tuple[str, ...],
    rollback: bool | None,
    keep_going: bool | None,
    wait: bool,
    wait_timeout: float | None,
) -> None:
    """Bring the stack NAME to another template, at any time, over whatever it is doing.

    Exits 3 when the update fails, 4 when --wait-timeout runs out first. With --preview nothing is done, and
    the exit code is 0 whether there are changes or not.
    """
    plan_view.refuse_waiting(preview=preview, wait=wait)
    if template_file is None and not existing:
        raise Failure("name a template with -t, or keep the stack's own with --existing")
    source = read_template(template_file) if template_file is not None else Source(Path(name), "", {})
    body = request_body(
        source,
        environments,
        parameters,
        timeout_mins=timeout_mins,
        tags=",".join(tags) or None,
        disable_rollback=None if rollback is None else not rollback,
        keep_going=keep_going,
        clear_parameters=list(cleared) or None,
        converge=converge or None,
    )
    if template_file is None:
        del body["template"]
    found = session.client.find(name)
    newest = session.client.newest_event(found) if wait else None
    try:
        if preview:
            plan_view.show(session, session.client.preview_update(found, body, existing=existing))
            return
        session.client.update(found, body, existing=existing)
    except ApiFailure as refusal:
        shown = template_file or Path(name)
        raise refusal.explained(shown, source.text, texts(environments, body)) from refusal
    if wait:
        conclude(session, found, watch(session, found, "UPDATE", newest, wait_timeout))
    else:
        begun(session, found, f"Stack {found.name} ({found.id}) is being updated.")


@stack.command("list")
@click.option("--deleted", is_flag=True, help="Deleted ones as well.")
@click.option("--nested", is_flag=True, help="Those nested in others as well.")
@click.option(
    "--status", "statuses", multiple=True, help="Only these, CREATE_FAILED for example; repeatable."
)
@click.option("--tag", "tags", multiple=True, help="Only with all of these tags; repeatable.")
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@client_command
def list_stacks(
    session: Session,
    *,
    deleted: bool,
    nested: bool,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    limit: int | None,
) -> None:
    """List the project's stacks, the newest first."""
    query: dict[str, str | int | list[str]] = {}
    if deleted:
        query["show_deleted"] = "true"
    if nested:
        query["show_nested"] = "true"
    if statuses:
        query["status"] = list(statuses)
    if tags:
        query["tags"] = ",".join(tags)
    found = session.client.stacks(query, limit)
    if session.as_json:
        session.document({"stacks": list(found)})
        return
    rows = [
        (one["stack_name"], render.status(one["stack_status"]), render.date(one["creation_time"]), one["id"])
        for one in found
    ]
    if rows or session.quiet:
        render.table(session.out(), ("NAME", "STATUS", "CREATED", "ID"), rows)
    else:
        session.say(f"Project {session.client.project} has no stacks.")


@stack.command()
@click.argument("name")
@client_command
def show(session: Session, *, name: str) -> None:
    """Show the stack NAME: how it is, its parameters and outputs."""
    found = session.client.show(name)
    if session.as_json:
        session.document(found)
        return
    out = session.out()
    render.facts(
        out,
        (
            ("name", found["stack_name"]),
            ("id", found["id"]),
            ("status", render.status(found["stack_status"])),
            ("reason", found["stack_status_reason"]),
            ("progress", _progress(found)),
            ("description", found.get("description")),
            ("created", render.date(found.get("creation_time"))),
            ("updated", render.date(found.get("updated_time"))),
            ("deleted", render.date(found.get("deletion_time"))),
            ("tags", ", ".join(found.get("tags") or ())),
        ),
    )
    given = {
        key: value for key, value in (found.get("parameters") or {}).items() if not key.startswith("OS::")
    }
    if given:
        session.say("\nParameters")
        render.outputs(out, [{"output_key": key, "output_value": value} for key, value in given.items()])
    if found.get("outputs"):
        session.say("\nOutputs")
        render.outputs(out, found["outputs"])


@stack.command()
@click.argument("name")
@click.option("--follow", "following", is_flag=True, help="Go on until the action under way ends.")
@click.option("--resource", help="Only this resource's.")
@click.option("--limit", type=click.IntRange(1), help="At most so many, the oldest first.")
@click.option("--nested", type=click.IntRange(0), default=0, help="Of so many levels of nested stacks too.")
@click.option(
    "--wait-timeout", type=click.FloatRange(0), metavar="SECONDS", help="With --follow: stop looking."
)
@client_command
def events(
    session: Session,
    *,
    name: str,
    following: bool,
    resource: str | None,
    limit: int | None,
    nested: int,
    wait_timeout: float | None,
) -> None:
    """Tell what happened to the stack NAME, the oldest first.

    With --follow and --json every event is one line of JSON; the exit code is that of `stack create --wait`.
    """
    if following and (resource or limit):
        raise Failure("--follow tells everything: it cannot be combined with --resource or --limit")
    found = session.client.find(name)
    if following:
        _follow_events(session, found, wait_timeout, nested)
        return
    listed = session.client.events(found, resource=resource, limit=limit, nested=nested)
    if session.as_json:
        session.document({"events": list(listed)})
        return
    out = session.out()
    for event in listed:
        out.print(line(event, found.name), soft_wrap=True)


@stack.command()
@click.argument("name")
@click.option(
    "--status", "statuses", multiple=True, help="Only these: COMPLETE, FAILED, IN_PROGRESS; repeatable."
)
@click.option("--type", "types", multiple=True, help="Only of these types; repeatable.")
@click.option("--nested", type=click.IntRange(0), default=0, help="Of so many levels of nested stacks too.")
@client_command
def resources(
    session: Session, *, name: str, statuses: tuple[str, ...], types: tuple[str, ...], nested: int
) -> None:
    """List the resources of the stack NAME."""
    query: dict[str, str | int | list[str]] = {"nested_depth": nested} if nested else {}
    if statuses:
        query["status"] = list(statuses)
    if types:
        query["type"] = list(types)
    found = session.client.find(name)
    listed = session.client.resources(found, query)
    if session.as_json:
        session.document({"resources": listed})
        return
    rows = (
        (
            f"{_stack_of(one, found)}{one['resource_name']}",
            one["resource_type"],
            render.status(one["resource_status"]),
            one["resource_status_reason"]
            if one["resource_status"].endswith("_FAILED")
            else one["physical_resource_id"],
        )
        for one in sorted(listed, key=lambda one: (_stack_of(one, found), str(one["resource_name"])))
    )
    render.table(session.out(), ("NAME", "TYPE", "STATUS", "PHYSICAL ID, OR WHY IT FAILED"), rows)


def _stack_of(resource: Mapping[str, Any], asked: StackId) -> str:
    """Return the name of the nested stack that a resource is in, with a dot, nothing for the one asked."""
    place = next((one["href"] for one in resource.get("links") or () if one["rel"] == "stack"), "")
    name, _, id_ = place.rpartition("/")
    return f"{name.rpartition('/')[2]}." if place and id_ != asked.id else ""


@stack.command()
@click.argument("name")
@click.argument("key", required=False)
@client_command
def outputs(session: Session, *, name: str, key: str | None) -> None:
    """Print the outputs of the stack NAME, or just the value of the output KEY."""
    found = session.client.find(name)
    if key is None:
        all_of_them = session.client.outputs(found)
        if session.as_json:
            session.document({"outputs": all_of_them})
        else:
            render.outputs(session.out(), all_of_them)
        return
    output = session.client.output(found, key)
    if output.get("output_error"):
        raise Failure(f"output {key} has no value: {output['output_error']}", facts={"output": output})
    if session.as_json:
        session.document({"output": output})
    else:
        text = render.plain(output["output_value"])
        click.echo(text, nl=not text.endswith("\n"))


@stack.command()
@click.argument("name")
@client_command
def template(session: Session, *, name: str) -> None:
    """Print the template of the stack NAME, as YAML unless --json is given."""
    found = session.client.template(session.client.find(name))
    if session.as_json:
        session.document(found)
    else:
        click.echo(render.plain(found))


@stack.command()
@click.argument("names", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", is_flag=True, help="Until they are gone.")
@click.option(
    "--wait-timeout", type=click.FloatRange(0), metavar="SECONDS", help="For each; the deletion goes on."
)
@client_command
def delete(
    session: Session, *, names: tuple[str, ...], yes: bool, wait: bool, wait_timeout: float | None
) -> None:
    """Delete the stacks NAMES and everything they made."""
    if not yes and sys.stdin.isatty():
        click.confirm(
            f"Delete {', '.join(names)} and everything in {'them' if len(names) > 1 else 'it'}?", abort=True
        )
    asked: list[tuple[StackId, Event | None]] = []
    failures: list[Failure] = []
    for name in names:
        try:
            found = session.client.find(name)
            newest = session.client.newest_event(found) if wait else None
            session.client.delete(found)
            asked.append((found, newest))
            session.say(f"Stack {found.name} is being deleted.")
        except Failure as failure:
            failures.append(failure)
    deleted: list[dict[str, str]] = []
    for found, newest in asked:
        status = "DELETE_IN_PROGRESS"
        if wait:
            try:
                end = watch(session, found, "DELETE", newest, wait_timeout)
                status = end.status
                if end.failed:
                    failures.append(failed(found, end))
            except Failure as failure:
                failures.append(failure)
        deleted.append({"stack_name": found.name, "id": found.id, "stack_status": status})
    if failures:
        raise _together(failures)
    if session.as_json:
        session.document({"stacks": deleted})
    elif wait:
        session.say(f"Gone: {', '.join(one['stack_name'] for one in deleted)}.")


def _together(failures: list[Failure]) -> Failure:
    """Make one failure of several: the highest exit code, every message."""
    if len(failures) == 1:
        return failures[0]
    return Failure(
        f"{len(failures)} of the stacks could not be deleted",
        code=Exit(max(failure.exit_code for failure in failures)),
        details=[text for failure in failures for text in (f"  {failure.message}", *failure.details)],
        facts={"failures": [failure.document()["error"] for failure in failures]},
    )


def _progress(found: Mapping[str, Any]) -> str:
    """Return how far the stack is, while it is under way."""
    figures = found.get("progress") or {}
    under_way = found["stack_status"].endswith("_IN_PROGRESS") and figures.get("total")
    return counted(figures) if under_way else ""


def _follow_events(session: Session, found: StackId, timeout: float | None, nested: int) -> None:
    """Tell the history, then what happens until the action under way ends; at rest, the history is all."""
    out = session.out()

    def tell(event: Event) -> None:
        if session.as_json:
            session.line(event)
        else:
            out.print(line(event, found.name), soft_wrap=True)

    last: Event | None = None
    under_way = True
    try:
        for event in session.client.events(found, nested=nested):
            tell(event)
            last = event
            if is_stack_event(event, found):
                under_way = event["resource_status"].endswith("_IN_PROGRESS")
        if not under_way:
            shown = session.client.show(found, outputs=False)
            under_way = shown["stack_status"].endswith("_IN_PROGRESS")
        end = End(shown["stack_status"], shown["stack_status_reason"]) if not under_way else None
        going = (
            () if end else follow(session.client, found, after=last, timeout_seconds=timeout, nested=nested)
        )
        for step in going:
            if isinstance(step, End):
                end = step
            else:
                tell(step)
    except KeyboardInterrupt:
        raise Failure(
            f"stopped watching; stack {found.name} goes on by itself", code=Exit.INTERRUPTED
        ) from None
    if end is not None and end.failed:
        raise failed(found, end)
