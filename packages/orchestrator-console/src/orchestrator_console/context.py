"""Access of a view to its request: the API, the caller, and the values that every page shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, cast

import orjson
from flask import Response, current_app, g, redirect, render_template, request, url_for

from api.web_applications import Identity, WebHost
from orchestrator_console.api_client import ApiClient
from orchestrator_console.json_types import JsonMapping

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
HOST: Final = "host"  # extension
MAX_RENDERED: Final = 32  # parts of pages that were rendered last
DEFAULT_PROJECT: Final = "demo"  # without authentication, as in the command line


@dataclass(slots=True)
class RenderedPart:
    """A part of a page, which one thread renders while the others wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    second: int = 0
    text: str = ""


def host() -> WebHost:
    """Return the host of the console."""
    return cast(WebHost, current_app.extensions[HOST])


def api() -> ApiClient:
    """Return the API, with the credentials of the session."""
    return cast(ApiClient, g.api)


def project_of(view_args: Mapping[str, Any] | None) -> str | None:
    """Return the project in the path."""
    return (view_args or {}).get("project")


def may(name: str) -> bool:
    """Whether the policy allows the caller an operation, by its name in the policy."""
    return host().may(g.who, name)


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
    who: Identity = g.who
    key = (host(), template, request.script_root, request.full_path, who.rights, orjson.dumps(values))
    part, second = _part(key), int(time.time())
    with part.lock:
        if part.second != second:
            part.text, part.second = page(template, **values), second
        return part.text


@lru_cache(MAX_RENDERED)
def _part(_key: Hashable) -> RenderedPart:
    """Return the place of a part of a page."""
    return RenderedPart()


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
    who: Identity | None = g.get("who")
    project = project_of(request.view_args)
    return {
        "project": project,
        "refreshes": refreshes(),
        "project_name": (project or "") if who is None else who.name_of(project or ""),
        "user": "" if who is None else who.user,
        "is_anonymous": host().auth == "none",
        "may": may,
        "tabs": TABS,
        "here": f"{request.script_root}{request.full_path.rstrip('?')}",
    }
