"""Parse a request's body into a `StackRequest` (docs/internals/rest-api.md §5.1). Every key is checked; files
and addresses that it names are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import orjson

from orchestrator.errors import CouldNotFetch, Diagnostic, InvalidRequest, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.json_text import holds_nul, load_json

Fetch = Callable[[str], str]  # returns the text at an address; raises CouldNotFetch
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")
TAG_LENGTH = 80


@dataclass(frozen=True, slots=True)
class StackRequest:
    """The request of a create, update, preview or validate, as sent."""

    template: JsonMapping | str | None
    stack_name: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    environment: JsonMapping | str | None = None
    parameters: JsonMapping = field(default_factory=dict)
    disable_rollback: bool = True
    timeout_mins: int | None = None
    tags: tuple[str, ...] = ()
    keep_going: bool = False  # a failure stops only the dependents of the failed resource
    delete_on_failure: bool = False  # a failed create is deleted, not rolled back
    resume: bool | None = None  # continue after an outage that outlasted the timeout
    # Names among `files`, merged in this order in place of `environment`. `parameters_win` is whether the
    # request's own parameters take precedence over them; in Heat they do not.
    environment_files: tuple[str, ...] = ()
    parameters_win: bool = False
    ignore_unknown_parameters: bool = False  # ignore values of parameters that the template does not have
    adopt_stack_data: str | None = None  # an exported stack whose resources are adopted


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """The request of an update; None stands for a missing key."""

    request: StackRequest
    patch: bool
    disable_rollback: bool | None
    keep_going: bool | None
    tags_left_out: bool
    clear_parameters: tuple[str, ...]
    converge: bool
    expected_revision: int | None  # the update is refused if there is a newer one

    @property
    def has_content(self) -> bool:
        """Whether it brings content: a PATCH may change settings only, and the content stays its author's."""
        request = self.request
        parts = (request.template, request.files, request.environment, request.parameters)
        given = (*parts, request.environment_files, self.clear_parameters)
        return not self.patch or not all(map(is_nothing, given))


def is_nothing(value: object) -> bool:
    """Return whether a part of a request is empty."""
    return all(is_nothing(inner) for inner in value.values()) if isinstance(value, dict) else not value


def reject_nul_bytes(*texts: bytes) -> None:
    """Reject JSON texts that contain the character NUL.

    Raises:
        InvalidRequest: a text contains it.
    """
    if any(map(holds_nul, texts)):
        raise InvalidRequest("The request contains the character NUL, which cannot be stored.")


def read_object(body: bytes) -> JsonObject:
    """Return the JSON object of a body; a body that does not begin with `{` counts as empty
    (docs/internals/rest-api.md §1).

    Raises:
        InvalidRequest: the body begins with `{` and is not valid JSON.
    """
    if not body.startswith(b"{"):
        return {}
    reject_nul_bytes(body)
    try:
        document: JsonObject = load_json(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The request body is not valid JSON: {error}") from error
    return document


def read_request(body: bytes, fetch: Fetch, *, named: bool = True) -> StackRequest:
    """Return the request of a body. `named` requires a stack name; `fetch` reads a `template_url`.

    Raises:
        InvalidRequest: a key is missing or has an invalid value.
        InvalidTemplate: the stack name is malformed.
    """
    document = read_object(body)
    name = document.get("stack_name")
    if named:
        if not name:
            raise InvalidRequest("No stack name specified")
        check_name(name)
        if "converge" in document:
            raise InvalidRequest(
                "'converge' is not supported for creates: a new stack has no resources to observe."
            )
    data = document.get("adopt_stack_data")
    if data is None:
        return _request(document, name, fetch, needs_template=True)
    if not named:
        raise InvalidRequest("'adopt_stack_data' is not supported for validation.")
    if not isinstance(data, str):
        raise InvalidRequest("'adopt_stack_data' must be a string in JSON or YAML.")
    return replace(_request(document, name, fetch, needs_template=False), adopt_stack_data=data)


def read_update(body: bytes, fetch: Fetch, *, patch: bool) -> UpdateRequest:
    """Return the update of a body; all keys of a PATCH are optional.

    Raises:
        InvalidRequest: a key is missing or has an invalid value.
    """
    document = read_object(body)
    patch = patch or _boolean(document, "existing", False)
    names = document.get("clear_parameters") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest("'clear_parameters' must be a list of names.")
    return UpdateRequest(
        _request(document, "", fetch, needs_template=not patch),
        patch,
        None if document.get("disable_rollback") is None else _boolean(document, "disable_rollback", True),
        None if document.get("keep_going") is None else _boolean(document, "keep_going", False),
        document.get("tags") is None,
        tuple(names),
        _boolean(document, "converge", False),
        _expected_revision(document),
    )


def _request(document: JsonMapping, name: object, fetch: Fetch, *, needs_template: bool) -> StackRequest:
    template = document.get("template")
    if template is None and document.get("template_url"):
        template = _fetched(document["template_url"], fetch)
    if template is None and needs_template:
        raise InvalidRequest("No template specified")
    if template is not None and not isinstance(template, dict | str):
        raise InvalidRequest("The template is not a JSON object or YAML mapping.")
    files = _files(document)
    return StackRequest(
        template=template,
        stack_name=name if isinstance(name, str) else "",
        files=files,
        environment=_environment(document),
        parameters=_mapping(document, "parameters"),
        disable_rollback=_boolean(document, "disable_rollback", True),
        timeout_mins=_timeout(document),
        tags=_tags(document),
        keep_going=_boolean(document, "keep_going", False),
        delete_on_failure=_boolean(document, "delete_on_failure", False),
        resume=None if document.get("resume") is None else _boolean(document, "resume", False),
        environment_files=_environment_files(document, files),
        parameters_win=_boolean(document, "parameters_win", False),
    )


def _fetched(url: object, fetch: Fetch) -> str:
    if not isinstance(url, str):
        raise InvalidRequest("'template_url' must be the URL of a template.")
    try:
        return fetch(url)
    except CouldNotFetch as error:
        why = f" ({error.why})" if error.why else ""
        raise CouldNotFetch(url, f"Could not retrieve template: {error}{why}") from error


def check_name(name: object) -> None:
    """Reject a name that a root stack cannot have (docs/internals/rest-api.md §3)."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return
    message = (
        f'Invalid stack name {name} must contain only alphanumeric or "_-." characters, '
        "must start with alpha and must be 255 characters or less."
    )
    raise InvalidTemplate([Diagnostic(code="bad-stack-name", message=message, path="stack_name")])


def _mapping(document: JsonMapping, key: str) -> JsonMapping:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"'{key}' must be a JSON object of names and values.")
    return value


def _environment(document: JsonMapping) -> JsonMapping | str | None:
    value = document.get("environment")
    if value is not None and not isinstance(value, dict | str):
        raise InvalidRequest("'environment' must be a JSON object or a string in YAML or JSON.")
    return value


def _files(document: JsonMapping) -> Mapping[str, str]:
    files = _mapping(document, "files")
    for name, text in files.items():
        if not isinstance(text, str):
            raise InvalidRequest(f"The content of the file {name} must be a string.")
    return files


def _environment_files(document: JsonMapping, files: Mapping[str, str]) -> tuple[str, ...]:
    names = document.get("environment_files")
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest("'environment_files' must be a list of names in 'files'.")
    for name in names:
        if not isinstance(files.get(name), str):
            raise InvalidRequest(f'No content found in the "files" section for environment file: {name}')
    return tuple(names)


def _boolean(document: JsonMapping, key: str, default: bool) -> bool:
    value = document.get(key)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise InvalidRequest(f'Unrecognized value "{value}" for "{key}", acceptable values are: true, false.')


def _expected_revision(document: JsonMapping) -> int | None:
    value = document.get("expected_revision")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise InvalidRequest("'expected_revision' must be the number of a revision.")
    return value


def _timeout(document: JsonMapping) -> int | None:
    value = document.get("timeout_mins")
    if value is None:
        return None
    try:
        minutes = int(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequest("Only integer is acceptable by 'timeout_mins'.") from error
    if isinstance(value, bool):
        raise InvalidRequest("Only integer is acceptable by 'timeout_mins'.")
    if minutes < 0 or minutes > 2**31 - 1:
        raise InvalidRequest(
            f"Value '{minutes}' is invalid for 'timeout_mins' which only accepts non-negative integer."
        )
    return minutes or None


def _tags(document: JsonMapping) -> tuple[str, ...]:
    value = document.get("tags")
    if value is None or value == "":
        return ()
    if not isinstance(value, str):
        raise InvalidRequest("'tags' must be a string of comma-separated tags.")
    return checked_tags(value.split(","))


def checked_tags(raw_tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags without duplicates; empty tags, which Terraform's provider sends, are dropped.

    Raises:
        InvalidRequest: a tag is too long.
    """
    tags = tuple(dict.fromkeys(tag.strip() for tag in raw_tags if tag.strip()))
    for tag in tags:
        if len(tag) > TAG_LENGTH:
            raise InvalidRequest(f'Invalid tag, "{tag}" is longer than {TAG_LENGTH} characters')
    return tags
