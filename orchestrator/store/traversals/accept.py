"""Acceptance of requests: a single durable transaction, after which the request may be answered
(docs/internals/protocol.md rule 6).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Json, Jsonb

from orchestrator.engine.states import Outcome
from orchestrator.errors import Conflict, NotSupported, StackExists
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.logs import request_id
from orchestrator.store.access.quotas import Limit
from orchestrator.store.events import event_sinks as sinks
from orchestrator.store.keystone import delegated_credentials
from orchestrator.store.stacks import stored_bytes
from orchestrator.store.stacks.accepted_resources import Part, insert_parts
from orchestrator.store.stacks.stored_bytes import ADD_CONTENTS, REVISION_BYTES
from orchestrator.store.traversals import revision_settings
from orchestrator.store.traversals.traversals import (
    STACK_EVENT,
    Locked,
    RevisionChanged,
    StartedTraversal,
    attach_revision,
    first_nodes,
    lock,
    start_traversal,
)

INSERT_CONTENT = (
    "INSERT INTO content (hash, body) VALUES (%(hash)s, %(body)b) ON CONFLICT DO NOTHING"  # may be large
)
LOCK_CONTENT = "SELECT 1 FROM content WHERE hash = %(hash)s FOR KEY SHARE"  # purge skips it

INSERT_STACK = (
    """
WITH id AS (SELECT nextval('stack_id_seq') AS id), s AS (
    INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, status_reason, traversal,
        disable_rollback, keep_going, delete_on_failure, resume,
        timeout_mins, tags, username, request_id)
    SELECT id.id, id.id, %(uuid)s, %(project_id)s, %(name)s, %(action)s, 'IN_PROGRESS',
        'Stack ' || %(action)s || ' started', 1,
        %(disable_rollback)s, %(keep_going)s, %(delete_on_failure)s, %(resume)s, %(timeout_mins)s, %(tags)s,
        %(username)s,
        %(request_id)s
    FROM id RETURNING *
), recorded AS ("""
    + STACK_EVENT
    + """ RETURNING id)
SELECT s.id, recorded.id FROM s CROSS JOIN recorded
"""
)

INSERT_REVISION = f"""
WITH counted AS ({ADD_CONTENTS})
INSERT INTO revision (stack_id, number, action, template_hash, environment, files, parameters, sealed,
    outline, resource_count, created_by, settings, author, credential_id, denied_types, stored_bytes)
VALUES (%(stack_id)s, %(number)s, %(action)s, %(template_hash)s, %(environment)s, %(files)s,
    %(parameters)s, %(sealed)s, %(outline)s, %(resource_count)s, %(created_by)s, %(settings)s, %(author)s,
    %(credential_id)s, %(denied_types)s,
    %(slice_bytes)s::bigint + {REVISION_BYTES.format(sealed="sealed")})
RETURNING id
"""

SET_ADOPTED = "UPDATE revision SET adopted = %(adopted)s WHERE id = %(revision_id)s"
SET_REVISION = """
UPDATE stack SET revision_id = %(revision_id)s, credential_id = %(credential_id)s WHERE id = %(stack_id)s
"""

# Run while the stack is locked: the numbers of revisions are consecutive.
NEXT_NUMBER = "SELECT coalesce(max(number), 0) + 1 FROM revision WHERE stack_id = %(stack_id)s"
# The purge skips locked rows.
FIND_REVISION = "SELECT id FROM revision WHERE stack_id = %(stack_id)s AND number = %(number)s FOR KEY SHARE"
# A copy of an earlier revision, with the slices of its template. Its author is who submitted it again, if
# anybody did. It keeps the rights of its author to types, unless others are given.
COPY_REVISION = """
WITH copy AS (
    INSERT INTO revision (stack_id, number, action, template_hash, environment, files, parameters, sealed,
        outline, resource_count, created_by, settings, stored_bytes, copy_of, author, credential_id,
        denied_types)
    SELECT stack_id, %(number)s, %(action)s, template_hash, environment, files, parameters, sealed, outline,
        resource_count, %(created_by)s, settings, stored_bytes, coalesce(copy_of, number),
        coalesce(%(author)s::jsonb, author),
        CASE WHEN %(author)s::jsonb IS NULL THEN credential_id ELSE %(credential_id)s::bigint END,
        coalesce(%(denied_types)s::text[], denied_types)
    FROM revision WHERE id = %(revision_id)s FOR KEY SHARE
    RETURNING id
), slices AS (
    INSERT INTO accepted_resources (revision_id, last_name, entries)
    SELECT copy.id, a.last_name, a.entries
    FROM copy JOIN accepted_resources a ON a.revision_id = %(revision_id)s
)
SELECT id FROM copy
"""
AUTHORITY = """
SELECT v.author, v.credential_id FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.id = %(stack_id)s
"""
ROOT_ID = "SELECT root_id FROM stack WHERE id = %(stack_id)s"
# Before the child: the completion of a root locks its children.
LOCK_ROOT = """
SELECT t.id, t.credential_id, s.credential_id FROM stack s JOIN stack t ON t.id = s.root_id
WHERE s.id = %(stack_id)s AND s.root_id <> s.id FOR SHARE OF t
"""
EMPTY_TEMPLATE: Final = b'{"heat_template_version":"2021-04-16"}'
EMPTY_OUTLINE: Final = {"version": "2021-04-16", "description": "", "parameters": {}, "outputs": {}}


class AuthorChanged(Conflict):
    """The content of a child stack has the credential of another author by now."""

    def __init__(self) -> None:
        """Advise to try again."""
        super().__init__(
            "The stack around this nested stack was changed by another request. Nothing was done. Please try"
            " again."
        )


class ConcurrentUpdate(Exception):
    """The stack changed after the update had been computed from it."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Who submits content, and the credential that they have delegated for it, if any."""

    author: JsonMapping  # user, user_id, project_id, roles
    credential_id: int | None = None

    @property
    def columns(self) -> JsonObject:
        """The columns of a revision."""
        return {"author": Jsonb(self.author), "credential_id": self.credential_id}


@dataclass(frozen=True, slots=True)
class StackInsert:
    """A validated stack, ready to be inserted."""

    uuid: uuid.UUID
    name: str
    project_id: str
    username: str
    template: bytes  # JSON text
    files: Mapping[str, str]
    environment: JsonMapping
    parameters: JsonMapping  # NULL for hidden parameters
    sealed: bytes | None  # hidden parameters, encrypted
    outline: JsonMapping
    resource_count: int
    disable_rollback: bool
    timeout_mins: int | None
    tags: tuple[str, ...]
    keep_going: bool = False
    authority: Authority | None = None  # None: the present revision's, whose content stays
    adopted: bytes | None = None  # name -> existing object, encrypted: the stack adopts these
    delete_on_failure: bool = False
    resume: bool | None = None  # None: only operations that the engine has started
    sinks: Sequence[JsonMapping] = ()  # the new webhooks among its event sinks
    slices: Sequence[Part] = ()  # of the resources of a large template
    limits: Sequence[Limit] = ()  # of the project, which it is close to: enforced at the end
    denied_types: Sequence[str] = ()  # to the author


def accept_create(
    db: Connection[TupleRow],
    insert: StackInsert,
    *,
    lease: int | None = None,
    seconds: float = 30.0,
) -> StartedTraversal:
    """Insert a stack with its first revision, plan node and finish node.

    Raises:
        StackExists: a live stack of the project has the name.
        Unavailable: its credential has been removed by now.
    """
    with db.transaction():
        action = "CREATE" if insert.adopted is None else "ADOPT"
        stack_id, event = _insert_stack(db, insert, action)
        authority = insert.authority
        assert authority is not None
        revision_id = _insert_revision(db, stack_id, insert, authority.columns, number=1, action=action)
        if insert.adopted is not None:
            db.execute(SET_ADOPTED, {"adopted": insert.adopted, "revision_id": revision_id})
        sinks.add(db, stack_id, insert.sinks)
        attach_revision(db, stack_id, 1, revision_id, event)
        credential_id = authority.credential_id
        values = {"revision_id": revision_id, "stack_id": stack_id, "credential_id": credential_id}
        db.execute(SET_REVISION, values)
        if credential_id is not None:
            delegated_credentials.hold(db, credential_id, stack_id)
        return first_nodes(
            db,
            stack_id=stack_id,
            root_id=stack_id,
            root=str(insert.uuid),
            traversal=1,
            lease=lease,
            seconds=seconds,
        )


def _insert_stack(db: Connection[TupleRow], insert: StackInsert, action: str) -> tuple[int, int]:
    """Insert the row of a stack and its first event; return the ids of both."""
    values = {
        "action": action,
        "uuid": insert.uuid,
        "project_id": insert.project_id,
        "name": insert.name,
        "disable_rollback": insert.disable_rollback,
        "keep_going": insert.keep_going,
        "delete_on_failure": insert.delete_on_failure,
        "resume": insert.resume,
        "timeout_mins": insert.timeout_mins,
        "tags": list(insert.tags),
        "username": insert.username,
        "request_id": request_id(),
    }
    try:
        row = db.execute(INSERT_STACK, values).fetchone()
    except errors.UniqueViolation as error:
        raise StackExists(insert.name) from error
    assert row is not None
    return row[0], row[1]


def accept_update(
    db: Connection[TupleRow],
    stack_id: int,
    insert: StackInsert,
    *,
    action: str,
    lease: int | None = None,
    converge: bool = False,
    based_on: int | None = None,
    expected: int | None = None,
) -> StartedTraversal | None:
    """Insert a stack's next revision and start the traversal to it; return None if the stack is gone.

    `converge`: compare with the observed state. `based_on`: the traversal in which the input of the update
    was read. `expected`: the number of the newest revision, as the caller knows it.

    Raises:
        RevisionChanged: the newest revision is another one.
        ConcurrentUpdate: the stack is in another traversal by now.
        NotSupported: the stack is suspended.
        AuthorChanged, Unavailable: the credential of the update is not the stack's any more.
    """
    with db.transaction():
        lock_root(db, stack_id, insert.authority)
        now = _lock_unless_suspended(db, stack_id)
        if now is None:
            return None
        number = _next_number(db, stack_id)
        if expected is not None and number - 1 != expected:
            raise RevisionChanged(insert.name, number - 1, expected)
        if based_on is not None and now.traversal != based_on:
            raise ConcurrentUpdate
        columns = _authority(db, stack_id, insert.authority)
        revision_id = _insert_revision(db, stack_id, insert, columns, number=number, action=action)
        sinks.add(db, stack_id, insert.sinks)
        sinks.activate_named(db, stack_id, revision_id)
        revision_settings.apply(db, revision_id)
        return start_traversal(db, stack_id, action, revision_id=revision_id, lease=lease, converge=converge)


def lock_root(db: Connection[TupleRow], stack_id: int, authority: Authority | None) -> None:
    """Lock the root of a child to which content is submitted, until the transaction ends: the child must run
    with the credential of the root, and the submission with the same (operations/adr/0026). Call it before
    the child is locked; without effect on a root.

    Raises:
        AuthorChanged: the credentials are not the same any more.
    """
    row = None if authority is None else db.execute(LOCK_ROOT, {"stack_id": stack_id}).fetchone()
    if row is None or authority is None:
        return
    root_id, *credentials = row
    used = delegated_credentials.of_visit(db, root_id, credentials[0])
    expected = None if used is None else used.id
    if authority.credential_id != expected or (expected and credentials[0] != credentials[1]):
        raise AuthorChanged


def _authority(db: Connection[TupleRow], stack_id: int, authority: Authority | None) -> JsonObject:
    """Return the columns of a revision, and let the locked stack hold the credential; without an authority
    the present revision's.
    """
    if authority is not None:
        if authority.credential_id is not None:
            root_id = db.execute(ROOT_ID, {"stack_id": stack_id}).fetchone()
            assert root_id is not None
            delegated_credentials.hold(db, authority.credential_id, root_id[0])
        return authority.columns
    row = db.execute(AUTHORITY, {"stack_id": stack_id}).fetchone()
    author, credential_id = (None, None) if row is None else row
    return {"author": None if author is None else Jsonb(author), "credential_id": credential_id}


def accept_rollback(
    db: Connection[TupleRow],
    stack_id: int,
    revision_id: int | None,
    *,
    created_by: str = "",
    authority: Authority | None = None,
    denied_types: Sequence[str] | None = None,
    ended: Outcome = "superseded",
    retain: bool = False,
) -> StartedTraversal | None:
    """Start a rollback to an earlier revision, or to an empty template without a revision; return None if the
    stack is gone. Run in a transaction.

    `created_by` is the user who requested it, empty after a failure. `authority` is that of a user who
    submits the revision again; without it the content runs with the credential of its author. `denied_types`
    belong to the new revision, None: to the earlier one. For `ended` and `retain` see
    `start_traversal`.

    Raises:
        Unavailable: the credential of `authority` has been removed by now.
    """
    if lock(db, stack_id) is None:
        return None
    columns: JsonObject = {"author": None, "credential_id": None}
    if authority is not None or revision_id is None:
        columns = _authority(db, stack_id, authority)
    values = columns | {
        "number": _next_number(db, stack_id),
        "action": "ROLLBACK",
        "revision_id": revision_id,
        "created_by": created_by,
        "denied_types": None if denied_types is None else list(denied_types),
    }
    if revision_id is None:
        made = db.execute(INSERT_REVISION, values | _empty_content(db, stack_id)).fetchone()
        assert made is not None
    else:
        made = db.execute(COPY_REVISION, values).fetchone()
        assert made is not None
        revision_settings.apply(db, made[0])
        sinks.activate_named(db, stack_id, made[0])
    return start_traversal(db, stack_id, "ROLLBACK", revision_id=made[0], ended=ended, retain=retain)


def _empty_content(db: Connection[TupleRow], stack_id: int) -> JsonObject:
    """Return the columns of a revision without resources."""
    [empty] = _store_contents(db, EMPTY_TEMPLATE)
    return {
        "stack_id": stack_id,
        "template_hash": empty,
        "environment": Json({}),
        "files": Jsonb({}),
        "parameters": Json({}),
        "sealed": None,
        "outline": Json(EMPTY_OUTLINE),
        "resource_count": 0,
        "settings": None,
        "denied_types": [],
        "slice_bytes": 0,
        "hashes": [empty],
        "sizes": [len(EMPTY_TEMPLATE)],
    }


# A snapshot can be restored while it exists and is complete.
LOCK_COMPLETE_SNAPSHOT = """
SELECT revision_id FROM snapshot
WHERE id = %(snapshot_id)s AND stack_id = %(stack_id)s AND action = 'CREATE' AND status = 'COMPLETE' FOR SHARE
"""
SET_RESTORED_SNAPSHOT = "UPDATE revision SET restores = %(snapshot_id)s WHERE id = %(revision_id)s"
SET_TEMPLATE = "UPDATE revision SET template_hash = %(hash)s, copy_of = NULL WHERE id = %(revision_id)s"


def accept_restore(
    db: Connection[TupleRow],
    stack_id: int,
    snapshot_id: int,
    *,
    template: bytes | None,
    created_by: str,
    authority: Authority,
    denied_types: Sequence[str],
) -> StartedTraversal | None:
    """Start to restore a snapshot's revision, with another `template` if given, as a submission of the
    caller; return None if the stack or the snapshot is gone.

    Raises:
        NotSupported: the stack is suspended.
        AuthorChanged, Unavailable: as `accept_update`.
    """
    with db.transaction():
        lock_root(db, stack_id, authority)
        if _lock_unless_suspended(db, stack_id) is None:
            return None
        snapshot = db.execute(
            LOCK_COMPLETE_SNAPSHOT, {"snapshot_id": snapshot_id, "stack_id": stack_id}
        ).fetchone()
        if snapshot is None:
            return None
        values = _authority(db, stack_id, authority) | {
            "number": _next_number(db, stack_id),
            "action": "RESTORE",
            "revision_id": snapshot[0],
            "created_by": created_by,
            "denied_types": list(denied_types),
        }
        made = db.execute(COPY_REVISION, values).fetchone()
        assert made is not None
        db.execute(SET_RESTORED_SNAPSHOT, {"snapshot_id": snapshot_id, "revision_id": made[0]})
        revision_settings.apply_restored(db, made[0])
        sinks.activate_named(db, stack_id, made[0])
        if template is not None:
            hashes = _store_contents(db, template)
            stored_bytes.add_contents(db, stack_id, hashes, [len(template)])
            db.execute(SET_TEMPLATE, {"hash": hashes[0], "revision_id": made[0]})
        return start_traversal(db, stack_id, "RESTORE", revision_id=made[0])


def _lock_unless_suspended(db: Connection[TupleRow], stack_id: int) -> Locked | None:
    now = lock(db, stack_id)
    if now is not None and now.action == "SUSPEND":
        raise NotSupported("Updating a stack when it is suspended")
    return now


def revision_of_number(db: Connection[TupleRow], stack_id: int, number: int) -> int | None:
    """Return the id of a stack's revision with this number, and protect it from the purge until the
    transaction ends.
    """
    row = db.execute(FIND_REVISION, {"stack_id": stack_id, "number": number}).fetchone()
    return None if row is None else row[0]


def _next_number(db: Connection[TupleRow], stack_id: int) -> int:
    row = db.execute(NEXT_NUMBER, {"stack_id": stack_id}).fetchone()
    assert row is not None
    number: int = row[0]
    return number


def _insert_revision(
    db: Connection[TupleRow],
    stack_id: int,
    insert: StackInsert,
    authority: JsonMapping,
    *,
    number: int,
    action: str,
) -> int:
    texts = [insert.template, *(text.encode() for text in insert.files.values())]
    template_hash, *hashes = _store_contents(db, *texts)
    files = {name: hash_.hex() for name, hash_ in zip(insert.files, hashes, strict=True)}
    row = db.execute(
        INSERT_REVISION,
        {
            "stack_id": stack_id,
            "number": number,
            "action": action,
            "template_hash": template_hash,
            "environment": Json(insert.environment),
            "files": Jsonb(files),
            "parameters": Json(insert.parameters),
            "sealed": insert.sealed,
            "outline": Json(insert.outline),
            "resource_count": insert.resource_count,
            "created_by": insert.username,
            "settings": Jsonb({name: getattr(insert, name) for name in revision_settings.NAMES}),
            **authority,
            "denied_types": list(insert.denied_types),
            "slice_bytes": sum(len(part.entries) for part in insert.slices),
            "hashes": [template_hash, *hashes],
            "sizes": [len(text) for text in texts],
        },
    ).fetchone()
    assert row is not None
    revision_id: int = row[0]
    insert_parts(db, revision_id, insert.slices)
    return revision_id


def _store_contents(db: Connection[TupleRow], *bodies: bytes) -> list[bytes]:
    """Store the texts that are new, and lock all of them for the transaction; return their hashes."""
    hashes = [hashlib.sha256(body).digest() for body in bodies]
    for hash_, body in sorted(zip(hashes, bodies, strict=True)):  # always in this order: no deadlocks
        while db.execute(LOCK_CONTENT, {"hash": hash_}).fetchone() is None:  # new, or purged just now
            db.execute(INSERT_CONTENT, {"hash": hash_, "body": body})
    return hashes
