"""Views of the API description: a document for programs and a page for readers."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from typing import Final

import orjson
from flask import Blueprint, Flask, Response, current_app, render_template
from markupsafe import Markup, escape

openapi = Blueprint("openapi", __name__, template_folder="pages")

PACKAGE: Final = "stack-orchestrator"
STYLE: Final = """\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
details { border-bottom: 1px solid #8884; padding: .35rem 0; }
details details { border: 0; padding-left: 1rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary .verb { display: inline-block; min-width: 4.5em; font-weight: 700; }
summary .about { color: #777; display: block; padding-left: 4.5em; }
.get { color: #17803d; } .post { color: #1d5fd1; } .delete { color: #c62828; }
.put, .patch { color: #a15c00; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; }
th { font-weight: 600; } td + td + td { color: #777; }
pre { background: #8881; padding: .6rem; overflow: auto; max-height: 28rem; font-size: .85rem; }
code { overflow-wrap: anywhere; }
"""
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


@openapi.get("/openapi.json")
def document() -> Response:
    """Describe the API as OpenAPI 3.1."""
    return Response(_text(current_app._get_current_object()), mimetype="application/json")  # type: ignore[attr-defined]


@openapi.get("/docs")
def page() -> Response:
    """Describe the API as a page without external resources."""
    text = render_template(
        "docs.html", api=orjson.loads(document().get_data()), style=STYLE, shown=_shown, prose=_prose
    )
    response = Response(text, mimetype="text/html")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


@cache
def _text(app: Flask) -> bytes:
    """Return the document, created on first use to keep the start fast."""
    from api.openapi.document import document as made  # noqa: PLC0415 - as above

    return orjson.dumps(made(app, version(PACKAGE)))


def _prose(text: str) -> Markup:
    """Return a text as HTML, with backquoted parts as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _shown(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
