"""The user that database and broker run as.

PostgreSQL refuses to run as root. Root therefore starts both servers as the system user `stack-orchestrator`,
which is created at the first start. A user shared with other programs, like `nobody`, would give all of them
access to the data.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import Misconfigured

NAME: Final = "stack-orchestrator"
SHARED: Final = "nobody"  # other programs run as this user
CREATE: Final = (
    *("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"),
    *("--shell", "/usr/sbin/nologin", NAME),
)
SYSTEM_PATH: Final = "/usr/sbin:/sbin:/usr/bin:/bin"
CREATE_SECONDS: Final = 10.0  # limit for attempts while a different process locks the user database


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """Return the user `stack-orchestrator` if this process runs as root, otherwise None: the current user.

    Raises:
        Misconfigured: the user does not exist and cannot be created, or is not suitable.
    """
    if os.geteuid() != 0:
        return None
    entry = _entry(NAME) or _created()
    nobody = _entry(SHARED)
    if entry.pw_uid in (0, nobody and nobody.pw_uid):
        raise Misconfigured(f"the user {NAME} has the uid of {'root' if entry.pw_uid == 0 else SHARED}")
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def identity(account: Account | None) -> dict[str, Any]:
    """Return the arguments of subprocess that select the user."""
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}


def user_names(account: Account | None) -> tuple[str, ...]:
    """Return the names of the users that may use the servers: the current user and `account`.

    Raises:
        Misconfigured: the current user has no name.
    """
    try:
        current = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise Misconfigured(
            f"the uid {os.geteuid()} has no entry in the user database, which PostgreSQL requires: add it,"
            " or set ORCHESTRATOR_DATABASE_URL"
        ) from error
    return (current,) if account is None else (current, account.name)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _created() -> pwd.struct_passwd:
    """Create the system user NAME; another process may do the same at the same time."""
    command = " ".join(CREATE)
    advice = f"create it with `{command}`, or run as an ordinary user"
    program = shutil.which(CREATE[0], path=SYSTEM_PATH)
    if program is None:
        raise Misconfigured(f"the database cannot run as root, and the user {NAME} does not exist: {advice}")
    deadline = time.monotonic() + CREATE_SECONDS
    while True:
        ended = subprocess.run(
            (program, *CREATE[1:]),
            env={"PATH": SYSTEM_PATH, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        entry = _entry(NAME)
        if entry is not None:
            return entry
        if time.monotonic() > deadline:
            reason = ended.stderr.strip() or f"status {ended.returncode}"
            raise Misconfigured(
                f"the database cannot run as root, and the user {NAME} was not created ({reason}): {advice}"
            )
        time.sleep(0.2)
