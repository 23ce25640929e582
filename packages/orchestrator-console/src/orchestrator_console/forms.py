"""Forms with a template: limits, files, and the faults of a rejected template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flask import request
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from orchestrator_console.context import host
from orchestrator_console.json_types import JsonMapping, JsonObject

MAX_FORM_BYTES: Final = 16 << 20  # larger templates are for the command line
TOO_LARGE: Final = (
    f"The form is larger than {MAX_FORM_BYTES >> 20} MiB. Use the command line for this template: "
    "orchestrator stack create -t FILE NAME"
)
TEXTS: Final = ("template", "environment")  # of which a file may be sent instead


def read_form() -> dict[str, str]:
    """Return the values of a form; a file replaces the text of the same name.

    Raises:
        RequestEntityTooLarge: the form is too large.
        BadRequest: a file is not text in UTF-8.
    """
    request.max_content_length = request.max_form_memory_size = MAX_FORM_BYTES
    try:
        with host().reading(request):
            values = {name: text.replace("\r\n", "\n") for name, text in request.form.items()}
            for name in TEXTS:
                sent = request.files.get(f"{name}_file")
                if sent is not None and sent.filename:
                    values[name] = sent.read().decode()
    except RequestEntityTooLarge as error:
        raise RequestEntityTooLarge(TOO_LARGE) from error
    except UnicodeDecodeError as error:
        raise BadRequest("The file is not text in UTF-8.") from error
    return values


def stack_body(values: Mapping[str, str]) -> JsonObject:
    """Return the body of a create or an update.

    Raises:
        BadRequest: a number is not valid.
    """
    body: JsonObject = {}
    if values.get("template_url", "").strip() and not values.get("template", "").strip():
        body["template_url"] = values["template_url"].strip()
    else:
        body["template"] = values.get("template", "")
    if values.get("environment", "").strip():
        body["environment"] = values["environment"]
    if parameters := parameters_of(values.get("parameters", "")):
        body["parameters"] = parameters
    body["tags"] = values.get("tags", "").strip()
    if timeout := values.get("timeout_mins", "").strip():
        if not timeout.isascii() or not timeout.isdigit():
            raise BadRequest(f"The timeout is not a number of minutes: {timeout[:40]}")
        body["timeout_mins"] = int(timeout)
    body["disable_rollback"] = values.get("rollback") != "yes"
    return body


def parameters_of(text: str) -> dict[str, str]:
    """Return parameters, a line `name=value` each.

    Raises:
        BadRequest: a line has another form.
    """
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip():
            raise BadRequest(f"Parameters, line {number}: write name=value.")
        found[name.strip()] = value
    return found


def faults_of(message: str, faults: list[JsonObject]) -> list[JsonMapping]:
    """Return the faults of a rejected request: each with a message, and a place if it is known."""
    return [*faults] or [{"message": message}]
