"""Calls at Keystone: tokens, projects, users, roles, trusts, application credentials, the catalog."""

from __future__ import annotations

from typing import Any, Final

from parity.calls import Call
from parity.neutron_requests import NO_ID

NO_HEX: Final = NO_ID.replace("-", "")


def _call(method: str, path: str, body: Any = None, **options: Any) -> Call:
    return Call("keystone", method, path, body, **options)


def post(path: str, body: Any, **options: Any) -> Call:
    return _call("POST", path, body, **options)


def put(path: str, body: Any = None, **options: Any) -> Call:
    return _call("PUT", path, body, **options)


def patch(path: str, body: Any, **options: Any) -> Call:
    return _call("PATCH", path, body, **options)


def get(path: str, **options: Any) -> Call:
    return _call("GET", path, **options)


def delete(path: str, **options: Any) -> Call:
    return _call("DELETE", path, **options)


def password(user: str, secret: str, scope: Any = None) -> Any:
    """Return a request for a token."""
    identity = {
        "methods": ["password"],
        "password": {"user": {"name": user, "password": secret, "domain": {"name": "Default"}}},
    }
    return {"auth": {"identity": identity} | ({} if scope is None else {"scope": scope})}


DEMO: Final = {"project": {"name": "demo", "domain": {"id": "default"}}}
TOKENS: Final = (
    get("@/", by="none"),
    get("", by="none"),
    get("/projects", by="none"),
    post("/auth/tokens", password("demo", "osfakepw", DEMO), by="none"),
    post("/auth/tokens", password("demo", "wrong", DEMO), by="none"),
    post("/auth/tokens", password("nobody", "wrong", DEMO), by="none"),
    post("/auth/tokens", password("demo", "osfakepw"), by="none"),
    post(
        "/auth/tokens",
        password("demo", "osfakepw", {"project": {"name": "none", "domain": {"id": "default"}}}),
        by="none",
    ),
    post("/auth/tokens", password("admin", "osfakepw", {"system": {"all": True}}), by="none"),
    post("/auth/tokens", password("demo", "osfakepw", {"domain": {"id": "default"}}), by="none"),
    post("/auth/tokens", {"auth": {}}, by="none"),
    get("/auth/tokens", headers={"X-Subject-Token": "bogus"}),
    get("/auth/catalog", by="demo"),
    get("/auth/projects", by="demo"),
)
PROJECTS: Final = (
    post("/projects", {"project": {"name": "h5-p", "description": "d"}}, save={"p": "project.id"}),
    post("/projects", {"project": {"name": "h5-p"}}),
    post("/projects", {"project": {}}),
    post("/projects", {"project": {"name": "h5-x"}}, by="demo"),
    get("/projects/{p}"),
    get(f"/projects/{NO_HEX}"),
    get("/projects?name=h5-p"),
    patch("/projects/{p}", {"project": {"description": "e", "enabled": False, "tags": ["a"]}}),
    post("/domains", {"domain": {"name": "h5-d"}}, save={"d": "domain.id"}),
    post("/domains", {"domain": {"name": "h5-d"}}),
    get("/domains/{d}"),
    get("/domains?name=h5-d"),
    delete("/domains/{d}"),
    patch("/domains/{d}", {"domain": {"enabled": False}}),
    post(
        "/users",
        {"user": {"name": "h5-u", "password": "x", "email": "a@b.c", "default_project_id": "{p}"}},
        save={"u": "user.id"},
    ),
    post("/users", {"user": {"name": "h5-u"}}),
    post("/users", {"user": {"name": "h5-u2"}}, save={"u2": "user.id"}),
    get("/users/{u}"),
    get(f"/users/{NO_HEX}"),
    get("/users?name=h5-u"),
    patch("/users/{u}", {"user": {"description": "e", "enabled": False}}),
    patch("/users/{u}", {"user": {"name": "h5-u2"}}),
    post("/groups", {"group": {"name": "h5-g", "description": ""}}, save={"g": "group.id"}),
    post("/groups", {"group": {"name": "h5-g"}}),
    get("/groups/{g}"),
    get(f"/groups/{NO_HEX}"),
    get("/groups?name=h5-g"),
    patch("/groups/{g}", {"group": {"description": "x"}}),
    put("/groups/{g}/users/{u}"),
    get("/groups/{g}/users"),
    get("/users/{u}/groups"),
    delete("/groups/{g}/users/{u}"),
    delete("/groups/{g}/users/{u}"),
    post("/roles", {"role": {"name": "h5-r"}}, save={"r": "role.id"}),
    post("/roles", {"role": {"name": "h5-r"}}),
    get("/roles/{r}"),
    get(f"/roles/{NO_HEX}"),
    get("/roles?name=h5-r"),
    patch("/roles/{r}", {"role": {"name": "h5-r2"}}),
    put("/projects/{p}/users/{u}/roles/{r}"),
    put(f"/projects/{{p}}/users/{{u}}/roles/{NO_HEX}"),
    get("/projects/{p}/users/{u}/roles"),
    get("/projects/{p}/users/{u2}/roles/{r}"),
    put("/domains/default/groups/{g}/roles/{r}"),
    get("/role_assignments?user.id={u}"),
    get("/role_assignments?group.id={g}"),
    delete("/projects/{p}/users/{u}/roles/{r}"),
    delete("/projects/{p}/users/{u}/roles/{r}"),
    delete("/domains/default/groups/{g}/roles/{r}"),
    post(
        "/services",
        {"service": {"name": "h5-s", "type": "h5-type", "description": "d"}},
        save={"s": "service.id"},
    ),
    post("/services", {"service": {"name": "h5-s"}}),
    get("/services/{s}"),
    get(f"/services/{NO_HEX}"),
    get("/services?type=h5-type"),
    patch("/services/{s}", {"service": {"enabled": False, "name": "h5-s2"}}),
    post("/regions", {"region": {"id": "h5-reg", "description": "d"}}),
    post("/regions", {"region": {"id": "h5-reg"}}),
    get("/regions/h5-reg"),
    get("/regions/h5-none"),
    patch("/regions/h5-reg", {"region": {"description": "x"}}),
    post(
        "/endpoints",
        {"endpoint": {"service_id": "{s}", "interface": "public", "url": "http://h5", "region": "h5-reg"}},
        save={"e": "endpoint.id"},
    ),
    post("/endpoints", {"endpoint": {"service_id": NO_HEX, "interface": "public", "url": "http://h5"}}),
    post("/endpoints", {"endpoint": {"service_id": "{s}", "interface": "bogus", "url": "http://h5"}}),
    get("/endpoints/{e}"),
    get(f"/endpoints/{NO_HEX}"),
    get("/endpoints?service_id={s}"),
    patch("/endpoints/{e}", {"endpoint": {"url": "http://h6"}}),
    delete("/regions/h5-reg"),
)
DELEGATION: Final = (
    post(
        "/OS-TRUST/trusts",
        {
            "trust": {
                "trustor_user_id": "{demo_id}",
                "trustee_user_id": "{admin_id}",
                "project_id": "{project}",
                "impersonation": True,
                "allow_redelegation": False,
                "roles": [{"name": "member"}],
                "orchestrator_mark": "m1",
            }
        },
        by="demo",
        save={"t": "trust.id"},
    ),
    post(
        "/OS-TRUST/trusts",
        {
            "trust": {
                "trustor_user_id": "{demo_id}",
                "trustee_user_id": "{admin_id}",
                "project_id": "{project}",
                "impersonation": True,
                "roles": [{"name": "admin"}],
            }
        },
        by="demo",
    ),
    post(
        "/OS-TRUST/trusts",
        {
            "trust": {
                "trustor_user_id": "{demo_id}",
                "trustee_user_id": "{admin_id}",
                "project_id": "{project}",
                "impersonation": True,
                "roles": [],
            }
        },
        by="demo",
    ),
    post(
        "/OS-TRUST/trusts",
        {
            "trust": {
                "trustor_user_id": "{admin_id}",
                "trustee_user_id": "{demo_id}",
                "project_id": "{project}",
                "impersonation": True,
                "roles": [{"name": "member"}],
            }
        },
        by="demo",
    ),
    get("/OS-TRUST/trusts/{t}", by="admin"),
    get("/OS-TRUST/trusts?trustee_user_id={admin_id}", by="admin"),
    post(
        "/auth/tokens",
        {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {
                        "user": {"name": "admin", "password": "osfakepw", "domain": {"name": "Default"}}
                    },
                },
                "scope": {"OS-TRUST:trust": {"id": "{t}"}},
            }
        },
        by="none",
    ),
    delete("/OS-TRUST/trusts/{t}", by="admin"),
    delete("/OS-TRUST/trusts/{t}", by="demo"),
    get("/OS-TRUST/trusts/{t}", by="admin"),
    post(
        "/auth/tokens",
        {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {
                        "user": {"name": "admin", "password": "osfakepw", "domain": {"name": "Default"}}
                    },
                },
                "scope": {"OS-TRUST:trust": {"id": "{t}"}},
            }
        },
        by="none",
    ),
    post(
        "/users/{demo_id}/application_credentials",
        {"application_credential": {"name": "h5-ac", "secret": "s3", "unrestricted": True}},
        by="demo",
        save={"ac": "application_credential.id"},
    ),
    post(
        "/users/{demo_id}/application_credentials",
        {"application_credential": {"name": "h5-ac", "secret": "s3"}},
        by="demo",
    ),
    get("/users/{demo_id}/application_credentials?name=h5-ac", by="demo"),
    post(
        "/auth/tokens",
        {
            "auth": {
                "identity": {
                    "methods": ["application_credential"],
                    "application_credential": {"name": "h5-ac", "secret": "s3", "user": {"id": "{demo_id}"}},
                }
            }
        },
        by="none",
    ),
    post(
        "/auth/tokens",
        {
            "auth": {
                "identity": {
                    "methods": ["application_credential"],
                    "application_credential": {"name": "h5-ac", "secret": "bad", "user": {"id": "{demo_id}"}},
                }
            }
        },
        by="none",
    ),
    delete("/users/{demo_id}/application_credentials/{ac}", by="demo"),
    delete("/users/{demo_id}/application_credentials/{ac}", by="demo"),
)
CLEANUP: Final = (
    delete("/endpoints/{e}"),
    delete("/services/{s}"),
    delete("/services/{s}"),
    delete("/regions/h5-reg"),
    delete("/roles/{r}"),
    delete("/groups/{g}"),
    delete("/users/{u}"),
    delete("/users/{u}"),
    delete("/users/{u2}"),
    delete("/domains/{d}"),
    delete("/projects/{p}"),
    delete("/projects/{p}"),
)
CALLS: Final = (*TOKENS, *PROJECTS, *DELEGATION, *CLEANUP)
