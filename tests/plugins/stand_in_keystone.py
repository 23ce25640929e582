"""A stand-in for Keystone: the parts of v3 for tokens, signatures, trusts and application credentials.

It is as strict as Keystone: only the trustor may delete a trust, a delegated token cannot delegate, and a
user cannot delegate a role without having it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import http.server
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.plugins.stand_in_domain import StackDomain

SERVICE = "the service's own token"
SERVICE_ID = "service-user"
DOMAIN = {"id": "default", "name": "Default"}


def token(
    project: str | None = None,
    roles: list[str] | None = None,
    minutes: int = 60,
    endpoints: list[tuple[str, str, str]] | None = None,
    user: str = "ada",
    **options: Any,
) -> dict[str, Any]:
    """Return a token as Keystone shows it; endpoints are (type, region, url)."""
    now = dt.datetime.now(dt.UTC)
    catalog: dict[str, list[dict[str, str]]] = {}
    for kind, region, url in endpoints or [("orchestration", "RegionOne", "http://here/v1")]:
        for interface in ("internal", "public"):
            catalog.setdefault(kind, []).append(
                {"interface": interface, "region": region, "region_id": region, "url": url}
            )
    scope = {"project": {"id": project, "name": project, "domain": DOMAIN}} if project else {}
    return {
        "methods": ["password"],
        "user": {"id": "u1" if user == "ada" else f"id of {user}", "name": user, "domain": DOMAIN},
        "audit_ids": ["x"],
        "expires_at": f"{now + dt.timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.000000Z}",
        "issued_at": f"{now:%Y-%m-%dT%H:%M:%S.000000Z}",
        "roles": [{"id": name, "name": name} for name in roles or ["member", "reader"]],
        "catalog": [{"type": kind, "name": kind, "endpoints": ends} for kind, ends in catalog.items()],
        **scope,
        **options,
    }


class StandIn:
    """Its objects, its requests, and its planned failures."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []  # tokens that were looked at
        self.trusts: dict[str, dict[str, Any]] = {}
        self.application_credentials: dict[str, dict[str, Any]] = {}
        self.regions: list[tuple[str, str]] = []  # of the orchestration service
        self.services: list[tuple[str, str, str]] = []  # further endpoints: type, region, url
        self.away = False
        self.offers_rights = True
        self.powerless: set[str] = set()  # ids of users without any role
        self.stack_domain = StackDomain()
        self.keys = ("their-key", "their-secret")
        self.project, self.roles, self.works = (
            "",
            ("member", "reader"),
            True,
        )  # of the key; whether it is known
        self.lose_answers = False  # requests take effect, and the answer is lost
        self.made = threading.Event()
        self.go_on = threading.Event()  # answers to creations wait for this event
        self.go_on.set()
        self.watch: Callable[[], None] = lambda: None  # called at every request
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.keystone = self  # type: ignore[attr-defined]
        self.port = self.server.server_port

    @property
    def place(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def endpoints(self) -> list[tuple[str, str, str]]:
        own = [("orchestration", *region) for region in self.regions or [("RegionOne", "http://here/v1")]]
        return [("identity", "RegionOne", f"{self.place}/v3"), *own, *self.services]

    def settings(self, **options: Any) -> dict[str, Any]:
        """Return the settings of an installation that uses it."""
        return {
            "auth": "keystone",
            "keystone_auth_url": f"{self.place}/v3",
            "keystone_username": "heat",
            "keystone_password": "secret",
            **options,
        }

    def knows(self, text: str, **options: Any) -> dict[str, str]:
        """Know a token from now on; return the headers that show it."""
        self.tokens[text] = token(**{"endpoints": self.endpoints, **options})
        return {"X-Auth-Token": text}

    def reset(self) -> None:
        """Remove all objects and planned failures."""
        self.trusts.clear()
        self.application_credentials.clear()
        self.stack_domain = StackDomain()
        self.powerless.clear()
        self.services = []
        self.away = self.lose_answers = False
        self.offers_rights = True
        self.made.clear()
        self.go_on.set()
        self.watch = lambda: None


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers a request."""

    @property
    def keystone(self) -> StandIn:
        return self.server.keystone  # type: ignore[attr-defined, no-any-return]

    def do_GET(self) -> None:
        knows, path = self.keystone, urlsplit(self.path).path.rstrip("/")
        if path == "/v3":
            link = {"rel": "self", "href": f"{knows.place}/v3/"}
            return self.answer(200, {"version": {"id": "v3.14", "status": "stable", "links": [link]}})
        knows.watch()
        if path == "/v3/auth/tokens":
            return self.validate(self.headers["X-Subject-Token"])
        if knows.away:
            return self.answer(500, {})
        if self.in_domain(path):
            return None
        return self.list(path)

    def in_domain(self, path: str, body: dict[str, Any] | None = None) -> bool:
        """Answer a request to the stack domain; False for other requests."""
        knows, query = self.keystone, parse_qs(urlsplit(self.path).query)
        token = knows.tokens.get(self.headers["X-Auth-Token"], {})
        reported = knows.stack_domain.answer(self.command, path, query, body, token)
        if reported is None:
            return False
        status, answer = reported
        if self.command == "POST" and status == 201:
            knows.made.set()
            knows.go_on.wait(30)
            if knows.lose_answers:
                self.close_connection = True
                return True
        self.answer(status, answer)
        return True

    def do_PUT(self) -> None:
        self.keystone.watch()
        if self.keystone.away:
            return self.answer(500, {})
        assert self.in_domain(self.path)
        return None

    def validate(self, subject: str) -> None:
        knows = self.keystone
        knows.asked.append(subject)
        if knows.away:
            return self.answer(500, {})
        assert self.headers["X-Auth-Token"] in (SERVICE, subject)
        result = knows.tokens.get(subject)
        return self.refuse(404, "none") if result is None else self.told(200, result, SERVICE)

    def list(self, path: str) -> None:
        knows, query = self.keystone, parse_qs(urlsplit(self.path).query)
        if path == "/v3/OS-TRUST/trusts":
            assert query == {"trustee_user_id": [SERVICE_ID]}
            assert self.headers["X-Auth-Token"] == SERVICE
            return self.answer(200, {"trusts": list(knows.trusts.values())})
        if path.startswith("/v3/OS-TRUST/trusts/"):
            trust = knows.trusts.get(path.rsplit("/", 1)[1])
            return self.refuse(404, "no trust") if trust is None else self.answer(200, {"trust": trust})
        result = [item for item in knows.application_credentials.values() if [item["name"]] == query["name"]]
        return self.answer(200, {"application_credentials": result})

    def do_POST(self) -> None:
        knows = self.keystone
        knows.watch()
        requests = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if knows.away:
            return self.answer(500, {})
        if self.path.endswith("/auth/tokens"):
            return self.sign_in(requests["auth"])
        if self.path.endswith("/ec2tokens"):
            return self.check_signature(requests["credentials"])
        if self.in_domain(self.path, requests):
            return None
        giver = knows.tokens.get(self.headers["X-Auth-Token"])
        if giver is None:
            return self.refuse(401, "The request you have made requires authentication.")
        if not knows.offers_rights:
            return self.refuse(404, "The requested URL was not found on the server.")
        if self.path.endswith("/OS-TRUST/trusts"):
            return self.give_trust(giver, requests["trust"])
        return self.give_application_credential(giver, requests["application_credential"])

    def sign_in(self, auth: dict[str, Any]) -> None:
        knows, identity = self.keystone, auth["identity"]
        if "application_credential" in identity:
            shown = identity["application_credential"]
            for item in knows.application_credentials.values():
                same = (item["name"], item["secret"]) == (shown["name"], shown["secret"])
                if same and item["user_id"] == shown["user"]["id"] not in knows.powerless:
                    made = token(item["project_id"], endpoints=knows.endpoints)
                    made["application_credential"] = {"id": item["id"]}
                    return self.issue(made)
            return self.refuse(401, "The request you have made requires authentication.")
        user = identity["password"]["user"]
        within = knows.stack_domain.sign_in(user, auth.get("scope", {}))
        if within is not None:
            return self.issue({**token(endpoints=knows.endpoints), **within})
        assert (user["name"], user["password"]) == ("heat", "secret")
        trust_id = auth.get("scope", {}).get("OS-TRUST:trust", {}).get("id")
        if trust_id is None:
            made = token("service", ["service"], endpoints=knows.endpoints)
            made["user"] = {"id": SERVICE_ID, "name": "heat", "domain": DOMAIN}
            return self.told(201, made, SERVICE)
        trust = knows.trusts.get(trust_id)
        if trust is None or trust["trustor_user_id"] in knows.powerless:
            return self.refuse(401, "The request you have made requires authentication.")
        made = token(trust["project_id"], trust["roles"], endpoints=knows.endpoints)
        made["user"]["id"] = trust["trustor_user_id"]
        made["OS-TRUST:trust"] = {"id": trust_id, "impersonation": True}
        return self.issue(made)

    def issue(self, made: dict[str, Any]) -> None:
        text = uuid.uuid4().hex
        self.keystone.tokens[text] = made
        self.told(201, made, text)

    def check_signature(self, supplied: dict[str, Any]) -> None:
        from keystoneclient.contrib.ec2.utils import Ec2Signer

        knows = self.keystone
        assert self.headers["X-Auth-Token"] == SERVICE
        if not knows.works:
            return self.answer(500, {})
        if supplied["access"] != knows.keys[0]:
            return self.refuse(401, "EC2 access key not found.")
        if supplied["signature"] != Ec2Signer(knows.keys[1]).generate(supplied):
            return self.refuse(401, "Invalid EC2 signature.")
        return self.told(200, token(project=knows.project, roles=list(knows.roles)), SERVICE)

    def give_trust(self, giver: dict[str, Any], requests: dict[str, Any]) -> None:
        assert requests["trustee_user_id"] == SERVICE_ID
        assert requests["impersonation"] is True
        assert "redelegation_count" not in requests  # of a trust's trust it would have to be less each time
        first = self.keystone.trusts.get(giver.get("OS-TRUST:trust", {}).get("id", ""))
        delegated = "application_credential" in giver or (first and not first["allow_redelegation"])
        if delegated or requests["trustor_user_id"] != giver["user"]["id"]:
            return self.refuse(403, "You are not authorized to perform the requested action.")
        return self.make(self.keystone.trusts, giver, requests, "trust")

    def give_application_credential(self, giver: dict[str, Any], requests: dict[str, Any]) -> None:
        if giver.get("application_credential", {}).get("restricted") or "OS-TRUST:trust" in giver:
            return self.refuse(403, "You are not authorized to perform the requested action.")
        requests |= {"user_id": giver["user"]["id"], "project_id": giver["project"]["id"]}
        return self.make(self.keystone.application_credentials, giver, requests, "application_credential")

    def make(
        self, things: dict[str, dict[str, Any]], giver: dict[str, Any], requests: dict[str, Any], keyword: str
    ) -> None:
        knows = self.keystone
        names = [role.get("id") or role["name"] for role in requests["roles"]]
        if not set(names) <= {role["id"] for role in giver["roles"]}:
            return self.refuse(404, "Could not find role.")
        made = {**requests, "roles": names, "id": uuid.uuid4().hex}
        things[made["id"]] = made
        knows.made.set()
        knows.go_on.wait(30)
        if knows.lose_answers:
            self.close_connection = True
            return None
        return self.answer(201, {keyword: made})

    def do_DELETE(self) -> None:
        knows, id_ = self.keystone, self.path.rsplit("/", 1)[1]
        knows.watch()
        if knows.away:
            return self.answer(500, {})
        if self.in_domain(self.path):
            return None
        by = knows.tokens.get(self.headers["X-Auth-Token"])
        things = knows.trusts if "OS-TRUST" in self.path else knows.application_credentials
        if id_ not in things:
            return self.refuse(404, "none")
        owner = things[id_].get("trustor_user_id") or things[id_]["user_id"]
        if by is None or by["user"]["id"] != owner:
            return self.refuse(403, "You are not authorized to perform the requested action.")
        del things[id_]
        return self.answer(204, None)

    def told(self, status: int, body: dict[str, Any], text: str) -> None:
        self.answer(status, {"token": body}, {"X-Subject-Token": text})

    def refuse(self, status: int, why: str) -> None:
        self.answer(status, {"error": {"code": status, "message": why, "title": "No"}})

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        supplied = {**(headers or {}), "Content-Type": "application/json", "Content-Length": str(len(data))}
        with contextlib.suppress(OSError):  # the client was killed
            self.send_response(status)
            for name, value in supplied.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def identity() -> Iterator[StandIn]:
    """The stand-in, listening."""
    stand_in = StandIn()
    thread = threading.Thread(target=stand_in.server.serve_forever)
    thread.start()
    yield stand_in
    stand_in.server.shutdown()
    stand_in.server.server_close()
    thread.join()
