"""Access of a view to its request: the API, the caller, and the values that every page shows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson
from flask import Response, g, redirect, render_template, request, url_for

from api.console.api_client import ApiClient
from api.dependencies import app_state, caller, dependencies
from orchestrator.json_types import JsonMapping
from orchestrator.operations.runtime.caches import Slots
from orchestrator.security.caller import Caller
from orchestrator.security.policy import allowed, policy_of

TABS: Final = (
    ("stack.summary", "Summary"),
    ("field.show", "Field"),
    ("stack_map.show", "Map"),
    ("timeline.show", "Timeline"),
    ("history.show", "History"),
    ("stack.resources", "Resources"),
    ("stack.events", "Events"),
    ("stack.failures", "Failures"),
    ("stack.drift", "Drift"),
    ("stack.outputs", "Outputs"),
    ("revisions.template", "Template"),
    ("revisions.index", "Revisions"),
)  # endpoint and label of the pages of a stack
MAX_RENDERED: Final = 32
DEFAULT_PROJECT: Final = "demo"  # without authentication, as in the command line


class RenderedParts(Slots[object, str]):
    """Pages that were rendered last."""


def api() -> ApiClient:
    """Return the API, with the credentials of the session."""
    return cast(ApiClient, g.api)


def project_of(view_args: Mapping[str, Any] | None) -> str | None:
    """Return the project in the path."""
    return (view_args or {}).get("project")


def project_name(who: Caller | None, project: str) -> str:
    """Return the name of a project if the token of the caller is one of the project; else its id."""
    contents = who.login.contents if who is not None and who.login is not None else None
    known = (contents or {}).get("project") or {}
    return str(known["name"]) if known.get("id") == project else project


def may(name: str) -> bool:
    """Whether the policy allows the caller an operation, by its name in the policy."""
    return allowed(policy_of(dependencies().settings), name, caller())


def path_of(project: str, *parts: str) -> str:
    """Return a path of the API below `/v1`."""
    return "/" + "/".join((project, *parts))


def page(template: str, /, **values: object) -> str:
    """Return a page as HTML."""
    return render_template(template, **values)


def live_page(template: str, /, **values: object) -> str:
    """Return a page as HTML that many viewers refresh at the same time. A refreshed part with the same
    values, for callers with the same rights, is rendered once per second: ages are in seconds.
    """
    if not refreshes():
        return page(template, **values)
    who: Caller | None = g.get("caller")
    rights = (who.roles, who.is_admin) if who is not None else ()
    key = (template, request.script_root, request.full_path, rights, orjson.dumps(values))
    rendered = app_state().part(RenderedParts, lambda: RenderedParts(MAX_RENDERED))
    return rendered.get(key, int(time.time()), lambda: page(template, **values))


def refreshes() -> bool:
    """Whether the request refreshes a part of a page, which needs neither the head nor the navigation."""
    return "HX-Request" in request.headers


def redirect_to(endpoint: str, **values: Any) -> Response:
    """Return a redirect to a page."""
    return cast(Response, redirect(url_for(endpoint, **values), 303))


def stack_path(project: str, name: str, stack_id: str, *parts: str) -> str:
    """Return the path of a stack in the API, or of a collection below it."""
    return path_of(project, "stacks", name, stack_id, *parts)


def draft_query() -> dict[str, object]:
    """Return the query for a first picture. A refreshed part of a page, and a reader without scripts who
    requests it (`complete`), wait for the complete one.
    """
    waits = refreshes() or "complete" in request.args
    return {} if waits else {"draft": "true"}


def marker_of(document: JsonMapping, last: str) -> str:
    """Return the marker of the next page, empty on the last page."""
    links = document.get("links") or ()
    return last if any(entry.get("rel") == "next" for entry in links) else ""


def console_context() -> dict[str, object]:
    """Return the values that every page shows."""
    who, project = g.get("caller"), project_of(request.view_args)
    return {
        "project": project,
        "refreshes": refreshes(),
        "project_name": project_name(who, project or ""),
        "user": who.user if who is not None else "",
        "is_anonymous": dependencies().settings.auth == "none",
        "may": may,
        "tabs": TABS,
        "here": f"{request.script_root}{request.full_path.rstrip('?')}",
    }
