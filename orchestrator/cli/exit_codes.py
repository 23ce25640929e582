"""Exit codes, and the exceptions that end a command with a message and an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.diagnostics import render

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DISABLED: Final = {
    "Stack Abandon is not supported.": "ORCHESTRATOR_ENABLE_STACK_ABANDON",
    "Stack Adopt is not supported.": "ORCHESTRATOR_ENABLE_STACK_ADOPT",
}
OPTION: Final = "-P"  # the display name of the request's own parameters
_KEYSTONE_URI: Final = re.compile(r'uri="([^"\s]+)"')
_REQUEST_FIELDS: Final = {
    "stack_name": "the stack name",
    "timeout_mins": "--timeout",
    "tags": "--tag",
    "files": "the files of the request",
}


class Exit(IntEnum):
    """The exit codes of all commands (docs/cli.md, "Exit codes")."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    STACK_FAILED = 3
    TIMEOUT = 4
    AUTH = 5
    INTERRUPTED = 130


def clean(text: object) -> str:
    """Return `text` without control characters: text of providers and templates must not move the cursor."""
    return _CONTROL.sub("�", str(text))


def one_line(text: object) -> str:
    """Return `text` without control characters and line breaks, for a row of a list."""
    return " ".join(clean(text).split())


class Failure(click.ClickException):
    """The end of a command: one line, details below it, an exit code, and fields for `--json`."""

    def __init__(
        self,
        message: str,
        *,
        code: Exit = Exit.ERROR,
        details: Sequence[str] = (),
        facts: JsonMapping | None = None,
    ) -> None:
        """Keep the message; `facts` are further fields of the JSON form."""
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance
        self.details = tuple(details)
        self.facts = dict(facts or {})

    def show(self, file: Any = None) -> None:
        """Print the message and the details to standard error."""
        for text in (f"Error: {self.message}", *self.details):
            click.echo(clean(text), file=file, err=file is None)

    def document(self) -> JsonObject:
        """Return the failure in the JSON form."""
        return {"error": {"message": self.message, "exit_code": self.exit_code, **self.facts}}


class ApiFailure(Failure):
    """A refusal by the server, read from the error body of docs/internals/rest-api.md §2."""

    def __init__(self, status: int, body: object, request_id: str | None, challenge: str = "") -> None:
        """Read any of the forms of an error body; all fields are optional. `challenge` is the scheme of
        authentication that a 401 names.
        """
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {}
        fallback = body.get("message") if isinstance(body, dict) else None
        reason = error.get("message") or fallback
        message = str(reason) if reason else _without_reason(status, error, request_id)
        faults = error.get("errors")
        self.status = status
        self.faults: list[JsonObject] = (
            [f for f in faults if isinstance(f, dict)] if isinstance(faults, list) else []
        )
        super().__init__(
            message,
            code=Exit.AUTH if status in {401, 403} else Exit.ERROR,
            details=_hints(status, message, challenge),
            facts={
                "status": status,
                "type": error.get("type"),
                "errors": self.faults,
                "request_id": request_id,
            },
        )

    def explained(
        self, template: Path, text: str, other_texts: Mapping[str, tuple[str, str]] | None = None
    ) -> Failure:
        """Return this refusal with every fault in the source line that caused it.

        `other_texts` has the display name and the text of each further file of the request, by its name in
        the request. A fault without a file belongs to the template, or to an option such as the stack name. A
        refusal without places (the name is taken, a quota) is returned unchanged.
        """
        options = [fault for fault in self.faults if _option(fault)]
        placed = [fault for fault in self.faults if not _option(fault)]
        if (
            not options
            and len(placed) < 2
            and not any(problem.get("line") or problem.get("path") for problem in placed)
        ):
            return self
        errors = [fault for fault in placed if fault.get("severity") != "warning"]
        named = {name: shown for name, (shown, _) in (other_texts or {}).items()}
        files = dict.fromkeys(
            named.get(str(problem.get("file")), str(problem.get("file") or template)) for problem in errors
        )
        messages = [f"{_option(fault)}: {one_line(fault.get('message') or '')}" for fault in options]
        if errors:
            count = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
            messages.append(f"{' and '.join(files)} {'is' if len(files) == 1 else 'are'} not valid: {count}")
        return Failure(
            "; ".join(messages),
            code=Exit(self.exit_code),
            details=in_source(placed, template, text, other_texts),
            facts=self.facts,
        )


def in_source(
    faults: Iterable[JsonMapping],
    template: Path,
    text: str,
    other_texts: Mapping[str, tuple[str, str]] | None = None,
) -> list[str]:
    """Return the output lines that show faults and warnings at their places in the source."""
    shown = []
    for diagnostic in (_diagnostic(fault, template) for fault in faults):
        is_template = diagnostic.file == str(template)
        name, source = (other_texts or {}).get(
            diagnostic.file, (diagnostic.file, text if is_template else "")
        )
        named = replace(diagnostic, file=name)
        named = replace(diagnostic, file=name)
        if name == OPTION:  # a value of the command line has no source line
            option = f"{OPTION} {diagnostic.path.removeprefix('parameters.')}"
            named = replace(diagnostic, file=option, path="")
        shown += render([named], source).rstrip().splitlines()
    return shown


def _option(fault: JsonMapping) -> str:
    """Return the part of the command line that a fault is about; "" for a fault in a file."""
    if fault.get("line") or fault.get("file"):
        return ""
    return _REQUEST_FIELDS.get(str(fault.get("path") or ""), "")


def _without_reason(status: int, error: JsonMapping, request_id: str | None) -> str:
    id_ = error.get("id") or request_id
    where = f" under {id_}" if id_ else ""
    return f"the server answered {status} without a reason; see its log{where}"


def _hints(status: int, message: str, challenge: str) -> list[str]:
    if status == 401 and challenge.startswith("Keystone"):
        found = _KEYSTONE_URI.search(challenge)
        at = f"={found[1]}" if found else ""
        return [
            f"  the server authenticates with Keystone: set OS_AUTH_URL{at}, OS_USERNAME, OS_PASSWORD and"
            " OS_PROJECT_NAME as for other clients of OpenStack (docs/clients.md)"
        ]
    if status == 401:
        return [
            "  set ORCHESTRATOR_TOKEN or ORCHESTRATOR_TOKEN_FILE;"
            " `orchestrator token create` on the server creates a token",
            "  or set ORCHESTRATOR_USERNAME and ORCHESTRATOR_PASSWORD, if the server has users",
        ]
    if message in _DISABLED:
        return [f"  the operator of the server enables it with {_DISABLED[message]}=true"]
    if status == 403 and message.startswith("You are not authorized"):
        return ["  this requires a role that you do not have in this project: docs/authentication.md"]
    if status == 403:
        return [
            "  the token belongs to a different project; select its project with --project or"
            " ORCHESTRATOR_PROJECT"
        ]
    return []


def _diagnostic(fault: JsonMapping, template: Path) -> Diagnostic:
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
