"""How a command ends: the exit codes, and the exception that carries one to the shell with its reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.errors import Diagnostic
from orchestrator.template.diagnostics import render

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Exit(IntEnum):
    """What a script may tell apart; 2 (changes or drift) belongs to the commands that compare."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    STACK_FAILED = 3
    TIMEOUT = 4
    AUTH = 5
    INTERRUPTED = 130


def clean(text: object) -> str:
    """Return `text` fit for a terminal: what a provider or a template said must not move the cursor."""
    return _CONTROL.sub("�", str(text))


def one_line(text: object) -> str:
    """Return `text` fit for one line of a list."""
    return " ".join(clean(text).split())


class Failure(click.ClickException):
    """A command that cannot go on: one line, details below it, an exit code, the same facts for `--json`."""

    def __init__(
        self,
        message: str,
        *,
        code: Exit = Exit.ERROR,
        details: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what to say; `facts` are added to the JSON form."""
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance
        self.details = tuple(details)
        self.facts = dict(facts or {})

    def show(self, file: Any = None) -> None:
        """Print the line and its details to standard error."""
        for text in (f"Error: {self.message}", *self.details):
            click.echo(clean(text), file=file, err=file is None)

    def document(self) -> dict[str, Any]:
        """Return the failure as the JSON document of a command that was asked for one."""
        return {"error": {"message": self.message, "exit_code": self.exit_code, **self.facts}}


class ApiFailure(Failure):
    """The server refused: the error body of docs/internals/rest-api.md §2, in one line."""

    def __init__(self, status: int, body: object, request_id: str | None) -> None:
        """Read whichever of the error shapes `body` has; none of them is required."""
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {}
        fallback = body.get("message") if isinstance(body, dict) else None
        said = error.get("message") or fallback
        message = str(said) if said else _unexplained(status, error, request_id)
        faults = error.get("errors")
        self.status = status
        self.faults: list[dict[str, Any]] = (
            [f for f in faults if isinstance(f, dict)] if isinstance(faults, list) else []
        )
        super().__init__(
            message,
            code=Exit.AUTH if status in {401, 403} else Exit.ERROR,
            details=_hints(status, message),
            facts={
                "status": status,
                "type": error.get("type"),
                "errors": self.faults,
                "request_id": request_id,
            },
        )

    def explained(
        self, template: Path, text: str, others: Mapping[str, tuple[str, str]] | None = None
    ) -> Failure:
        """Return this refusal with every fault shown in the text it is about, the way a compiler does.

        A fault that names a file is about one of `others`, each with what to call it and its text; without
        a name it is about the template.

        A refusal of something else (the name is taken, a quota) has no place in it and stays as it is.
        """
        if len(self.faults) < 2 and not any(fault.get("line") or fault.get("path") for fault in self.faults):
            return self
        count = sum(fault.get("severity") != "warning" for fault in self.faults)
        return Failure(
            f"{template} was refused: {count} fault{'s' if count != 1 else ''}",
            code=Exit(self.exit_code),
            details=in_source(self.faults, template, text, others),
            facts=self.facts,
        )


def in_source(
    faults: Iterable[Mapping[str, Any]],
    template: Path,
    text: str,
    others: Mapping[str, tuple[str, str]] | None = None,
) -> list[str]:
    """Return the lines that show faults and warnings of an answer in the texts they are about."""
    shown = []
    for one in (_diagnostic(fault, template) for fault in faults):
        name, source = (others or {}).get(one.file, (one.file, text if one.file == str(template) else ""))
        shown += render([replace(one, file=name)], source).rstrip().splitlines()
    return shown


class ExitOneOnUsage(click.Command):
    """A command whose usage errors end with 1: click's own 2 means "changes" here."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments; a mistake among them is an ordinary error."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            error.exit_code = int(Exit.ERROR)  # type: ignore[misc]  # click reads it from the instance
            raise


class ExitOneOnUsageGroup(ExitOneOnUsage, click.Group):
    """A group of such commands."""

    command_class = ExitOneOnUsage

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; naming none, or one that does not exist, is an ordinary error."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.exit_code = int(Exit.ERROR)  # type: ignore[misc]  # click reads it from the instance
            raise


def _unexplained(status: int, error: Mapping[str, Any], request_id: str | None) -> str:
    named = error.get("id") or request_id
    where = f" under {named}" if named else ""
    return f"the server answered {status} without a reason; its log says more{where}"


def _hints(status: int, message: str) -> list[str]:
    if status == 401:
        return [
            "  set ORCHESTRATOR_TOKEN or ORCHESTRATOR_TOKEN_FILE;"
            " on the server, `orchestrator token create` makes one",
            "  or ORCHESTRATOR_USERNAME and ORCHESTRATOR_PASSWORD, where the server has users",
        ]
    if status == 403 and message.startswith("You are not authorized"):
        return ["  it takes a role that you do not have in this project: docs/authentication.md"]
    if status == 403:
        return [
            "  the token belongs to another project; choose its own with --project or ORCHESTRATOR_PROJECT"
        ]
    return []


def _diagnostic(fault: Mapping[str, Any], template: Path) -> Diagnostic:
    line, column = fault.get("line"), fault.get("column")
    return Diagnostic(
        code=str(fault.get("code") or "error"),
        message=clean(fault.get("message") or ""),
        path=clean(fault.get("path") or ""),
        line=line if isinstance(line, int) else None,
        column=column if isinstance(column, int) else None,
        file=str(fault.get("file") or template),
        excerpt=clean(fault.get("excerpt") or ""),
        hint=clean(fault.get("hint") or ""),
        severity="warning" if fault.get("severity") == "warning" else "error",
    )
