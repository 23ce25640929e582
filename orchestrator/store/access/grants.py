"""Access that a resource grants to its stack: written under the resource's lease, found by key or token, and
void when the resource's row is deleted.

Access is not revoked separately: every lookup joins the resource, and a deleted or suspended resource grants
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.signals.ingest import Receiver

Db = Connection[TupleRow]

UPSERT = """
INSERT INTO access (id, stack_id, key, secret, token_hash, user_name, policies, keystone_user)
SELECT r.id, r.stack_id, %(key)s, %(secret)s, %(token_hash)s, %(user_name)s, %(policies)s::text[],
    %(keystone_user)s::text
FROM resource r WHERE r.id = %(resource_id)s AND r.lease = %(lease)s
ON CONFLICT (id) DO UPDATE
SET key = excluded.key, secret = excluded.secret, token_hash = excluded.token_hash,
    user_name = excluded.user_name, policies = excluded.policies, keystone_user = excluded.keystone_user
RETURNING id
"""

DELETE = """
DELETE FROM access a USING resource r
WHERE a.id = %(resource_id)s AND r.id = a.id AND r.lease = %(lease)s
RETURNING a.id
"""

# The resource behind a key or a token. A suspended resource grants no access; nor does the key of a suspended
# or deleted user.
_FIND: Final = """
SELECT r.id, r.name, r.type, r.runs_as, r.action, r.physical_id,
    s.id, s.uuid::text, s.name, s.project_id, a.user_name, u.policies, a.secret, {}
FROM access a
JOIN resource r ON r.id = a.id AND NOT r.suspended
JOIN stack s ON s.id = a.stack_id AND s.deleted_at IS NULL
LEFT JOIN LATERAL (
    SELECT u.policies FROM access u JOIN resource o ON o.id = u.id AND NOT o.suspended
    WHERE u.stack_id = a.stack_id AND u.user_name = a.user_name AND u.key IS NULL LIMIT 1) AS u ON true
WHERE (a.user_name IS NULL OR u.policies IS NOT NULL) AND """
BY_KEY = f"{_FIND.format('a.key')}a.key = ANY (ARRAY(SELECT json_array_elements_text(%(keys)s::json)))"
BY_TOKEN = f"{_FIND.format('a.token_hash')}a.token_hash = ANY(%(hashes)s::bytea[])"
BY_USER = f"{_FIND.format('a.keystone_user')}a.keystone_user = %(user)s"

# The lists of resource names that the access policies of a stack allow, by the names of the policies.
ALLOWED = """
SELECT r.name, coalesce(r.properties, '{}') -> 'AllowedResources'
FROM resource r
WHERE r.stack_id = %(stack_id)s AND r.name = ANY(%(policies)s) AND NOT r.deposed
    AND coalesce(r.runs_as, r.type) = 'OS::Heat::AccessPolicy'
"""


# Which of some texts are keys or ids of Keystone users, and which of some hashes belong to tokens.
KNOWN: Final = """
SELECT a.key, a.keystone_user, a.token_hash FROM access a
WHERE a.key = ANY(%(texts)s::text[]) OR a.keystone_user = ANY(%(texts)s::text[])
    OR a.token_hash = ANY(%(hashes)s::bytea[])
"""
# The encrypted secrets of the keys of users in a tree of stacks.
USER_SECRETS: Final = """
SELECT a.secret FROM stack s JOIN stack o ON o.root_id = s.root_id JOIN access a ON a.stack_id = o.id
WHERE s.id = %(stack_id)s AND a.user_name IS NOT NULL AND a.secret IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class KnownCredentials:
    """The credentials among some texts and hashes."""

    names: frozenset[str]
    hashes: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class AccessRow:
    """The access that a key or a token grants."""

    gave: Receiver  # the resource that granted it
    stack_id: int
    stack_uuid: str
    stack_name: str
    project_id: str
    user: str | None
    policies: tuple[str, ...]
    secret: bytes | None  # encrypted

    @property
    def resource(self) -> str:
        """The name of the resource that granted it."""
        return self.gave.name


def put(
    db: Db,
    resource_id: int,
    lease: int,
    *,
    key: str | None,
    secret: bytes | None,
    token_hash: bytes | None,
    user: str | None,
    policies: Sequence[str],
    keystone_user: str | None = None,
) -> bool:
    """Write the access that a resource grants; return False if the lease of the resource is lost."""
    values = {
        "resource_id": resource_id,
        "lease": lease,
        "key": key,
        "secret": secret,
        "token_hash": token_hash,
        "user_name": user,
        "policies": list(policies),
        "keystone_user": keystone_user,
    }
    return db.execute(UPSERT, values).fetchone() is not None


def drop(db: Db, resource_id: int, lease: int) -> None:
    """Delete the access that a resource granted."""
    fetch_prepared(db, DELETE, {"resource_id": str(resource_id), "lease": str(lease)})


def by_key(db: Db, keys: Sequence[str]) -> list[AccessRow | None]:
    """Return the access behind each key, None for an unknown key."""
    rows = {
        row[-1]: _row(row) for row in fetch_prepared(db, BY_KEY, {"keys": orjson.dumps(list(keys)).decode()})
    }
    return [rows.get(key) for key in keys]


def by_token(db: Db, hashes: Sequence[bytes]) -> list[AccessRow | None]:
    """Return the access behind each token, None for an unknown token."""
    texts = ",".join(rf'"\\x{digest.hex()}"' for digest in hashes)
    rows = {bytes(row[-1]): _row(row) for row in fetch_prepared(db, BY_TOKEN, {"hashes": f"{{{texts}}}"})}
    return [rows.get(digest) for digest in hashes]


def by_user(db: Db, user_id: str) -> AccessRow | None:
    """Return the access of a Keystone user that belongs to a resource."""
    rows = fetch_prepared(db, BY_USER, {"user": user_id})
    return _row(rows[0]) if rows else None


def known(db: Db, texts: Sequence[str], hashes: Sequence[bytes]) -> KnownCredentials:
    """Return the texts that are keys or ids of users, and the hashes of tokens."""
    rows = db.execute(KNOWN, {"texts": list(texts), "hashes": list(hashes)}).fetchall()
    names = {name for key, user, _ in rows for name in (key, user) if name is not None}
    digests = {bytes(digest) for *_, digest in rows if digest is not None}
    return KnownCredentials(frozenset(names & {*texts}), frozenset(digests & {*hashes}))


def user_secrets(db: Db, stack_id: int) -> list[bytes]:
    """Return the encrypted secrets of the keys of users in the tree of a stack."""
    return [bytes(row[0]) for row in db.execute(USER_SECRETS, {"stack_id": stack_id})]


def allowed(db: Db, stack_id: int, policies: Sequence[str]) -> dict[str, list[str]]:
    """Return the resource names that each of these policies allows; missing policies are left out."""
    return dict(db.execute(ALLOWED, {"stack_id": stack_id, "policies": list(policies)}).fetchall())


def _row(row: TupleRow) -> AccessRow:
    stack_id, uuid, name, project, user, policies, secret = row[6:13]
    sealed = None if secret is None else bytes(secret)
    return AccessRow(Receiver(*row[:6]), stack_id, uuid, name, project, user, tuple(policies or ()), sealed)
