"""Callers with a name and a password (`auth = basic`), from a file of the operator:

    users:
      ada:
        password: scrypt:32768:8:1$…  # from `orchestrator hash-password`
        project: shop
        roles: [member]  # reader, member, admin; default: member
      grace: {password: …, project: office, roles: [reader]}

Password hashes are slow by design, so verified passwords are cached for a while, as keyed hashes in memory.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from werkzeug.security import check_password_hash, generate_password_hash

from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate, LimitExceeded, Misconfigured, Unauthenticated
from orchestrator.security.caller import Caller
from orchestrator.security.ttl_cache import TtlCache
from orchestrator.template.parse import Limits, parse

CHALLENGE: Final = 'Basic realm="orchestrator", charset="UTF-8"'
REMEMBERED_SECONDS: Final = 300.0
MAX_LENGTH: Final = 1_000  # characters of name and password together
_USER_KEYS: Final = frozenset({"password", "project", "roles"})
_FORMS: Final = ("scrypt:", "pbkdf2:")


@dataclass(frozen=True, slots=True)
class User:
    """A user of the file."""

    name: str
    project_id: str
    roles: tuple[str, ...]
    password_hash: str = field(repr=False)


def hash_password(password: str) -> str:
    """Return the hash of a password, to be stored in the file."""
    return generate_password_hash(password, method="scrypt")


class Users:
    """Authenticator for names and passwords."""

    def __init__(self, settings: Settings) -> None:
        """Read the file.

        Raises:
            Misconfigured: no file is set, or it is invalid.
        """
        if settings.users_file is None:
            raise Misconfigured(
                "ORCHESTRATOR_AUTH is basic: set ORCHESTRATOR_USERS_FILE to the file of users"
            )
        self._users = read_users(settings.users_file)
        self._good = TtlCache()
        self._key = secrets.token_bytes(32)
        # an unknown name takes as long as a wrong password
        self._dummy_hash = hash_password(secrets.token_urlsafe())

    def __call__(self, environ: Mapping[str, Any]) -> Caller:
        """Return the caller of a request.

        Raises:
            Unauthenticated: it has no name and password, or they are wrong.
        """
        credentials = basic_credentials(environ.get("HTTP_AUTHORIZATION", ""))
        if credentials is None:
            raise Unauthenticated(CHALLENGE)
        name, password = credentials
        user = self._users.get(name)
        digest = hashlib.blake2b(f"{name}\0{password}".encode(), key=self._key).hexdigest()
        if self._good.get(digest) is None:
            right = check_password_hash(self._dummy_hash if user is None else user.password_hash, password)
            if not right or user is None:
                raise Unauthenticated(CHALLENGE)
            self._good.set(digest, b"", REMEMBERED_SECONDS)
        assert user is not None  # only valid names are cached
        return Caller(user.project_id, user.name, user.roles)


def basic_credentials(header: str) -> tuple[str, str] | None:
    """Return name and password in the header `Authorization`, None if it has another form."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, separator, password = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (name, password) if separator and len(name) + len(password) <= MAX_LENGTH else None


@cache
def read_users(path: Path) -> Mapping[str, User]:
    """Return the users by name. The file is read once per process: a change takes effect at a restart.

    Raises:
        Misconfigured: it cannot be read or is invalid; the message lists every fault and no password.
    """
    try:
        document = parse(path.read_bytes(), Limits(max_bytes=16 * 1024 * 1024), "users")
    except OSError as error:
        raise Misconfigured(f"the users {path} cannot be read: {error.strerror or error}") from error
    except (InvalidTemplate, LimitExceeded) as error:
        raise Misconfigured(f"the users {path} are wrong: {error}") from error
    users = document.get("users")
    if document.keys() != {"users"} or not isinstance(users, dict):
        raise Misconfigured(f"the users {path} are wrong: it must be a map of `users` by name")
    faults = [fault for name, body in users.items() for fault in _faults(name, body)]
    if faults:
        raise Misconfigured(f"the users {path} are wrong:\n" + "\n".join(f"  {fault}" for fault in faults))
    return {
        name: User(name, body["project"], tuple(body.get("roles", ("member",))), body["password"])
        for name, body in users.items()
    }


def _faults(name: Any, body: Any) -> Iterator[str]:
    if not isinstance(name, str) or not name or ":" in name:
        yield f"{name}: a name is a text without a colon"
    if not isinstance(body, dict):
        yield f"{name}: must be a map of password, project and roles"
        return
    if unknown := sorted(str(key) for key in body.keys() - _USER_KEYS):
        yield f"{name}: has no {', '.join(unknown)}; it may have {', '.join(sorted(_USER_KEYS))}"
    if not isinstance(body.get("project"), str) or not body["project"]:
        yield f"{name}: must have a project"
    hashed = body.get("password")
    if not isinstance(hashed, str) or not hashed.startswith(_FORMS) or hashed.count("$") != 2:
        yield f"{name}: its password must be hashed: `orchestrator hash-password` does it"
    roles = body.get("roles", [])
    if not isinstance(roles, list) or not all(isinstance(role, str) and role for role in roles):
        yield f"{name}: its roles must be a list of names"
