"""`make_url` (docs/internals/hot-language.md §5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, uses_netloc

from orchestrator.json_types import JsonMapping
from orchestrator.template.functions.registry import References, is_call
from orchestrator.template.functions.resolved_argument import whole_function

PARTS: Final = ("scheme", "username", "password", "host", "port", "path", "query", "fragment")
PORTS: Final = range(1, 65536)
HIDDEN: Final = "******"


def _check_url(args: object, references: References) -> None:  # noqa: ARG001
    if not isinstance(args, dict) or is_call(args):
        raise TypeError('The arguments to "make_url" must be a map')
    unknown = sorted(str(name) for name in args.keys() - set(PARTS))
    if unknown:
        raise ValueError(f'Invalid arguments to "make_url": {", ".join(unknown)}')
    _check_parts({name: value for name, value in args.items() if not is_call(value)}, args)


def _check_parts(parts: JsonMapping, args: JsonMapping) -> None:
    """Check the known parts; `args` holds all parts, for the message."""
    for name in PARTS:
        if name not in parts:
            continue
        if name == "port":
            _check_port(parts[name], args)
        elif name == "query" and not isinstance(parts[name], Mapping):
            raise TypeError('The "query" argument to "make_url" must be a map')
        elif name != "query" and not isinstance(parts[name], str):
            raise TypeError(f'The "{name}" argument to "make_url" must be a string')


def _check_port(port: Any, args: JsonMapping) -> None:
    try:
        number = int(port)
    except ValueError:
        shown = {name: HIDDEN if name == "password" else value for name, value in args.items()}
        raise ValueError(f'Invalid URL port "{port}" for make_url called with {shown}') from None
    if number not in PORTS:
        raise ValueError(f"Invalid URL port {number}, must be in range 1-65535")


@whole_function("make_url", since="2017-09-01", check=_check_url)
def make_url(parts: Any) -> str:
    """``{make_url: {scheme: http, host: "::1", port: 80, path: a}}`` gives ``"http://[::1]:80/a"``."""
    _check_parts(parts, parts)
    scheme = parts.get("scheme", "")
    if ":" in scheme:
        raise ValueError("URL \"scheme\" should not contain ':'")
    where = _where(parts)
    path = quote(parts.get("path", ""))
    # Built manually: urllib's result for a path with two slashes differs between its versions.
    if where or (scheme in uses_netloc and scheme and not path.startswith("//")):
        path = f"//{where}{path if path.startswith('/') or not path else '/' + path}"
    query = urlencode(parts.get("query", {}), safe="/")
    fragment = quote(parts.get("fragment", ""))
    return "".join(
        [
            f"{scheme}:" if scheme else "",
            path,
            f"?{query}" if query else "",
            f"#{fragment}" if fragment else "",
        ]
    )


def _where(parts: JsonMapping) -> str:
    """Return user, host and port in URL form."""
    user = quote(parts.get("username", ""), safe="")
    if parts.get("password"):
        user += ":" + quote(parts["password"], safe="")
    port = f":{parts['port']}" if "port" in parts else ""
    return (f"{user}@" if user else "") + _host(parts) + port


def _host(parts: JsonMapping) -> str:
    host: str = parts.get("host", "")
    if len(host) > 1 and host[0] == "[" and host[-1] == "]":
        host = host[1:-1]
    if ":" in host:
        return f"[{quote(host, safe=':')}]"
    return quote(host, safe="")
