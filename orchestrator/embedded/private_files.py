"""Files in the directories of the embedded servers, safe against other users and against the servers.

Root writes files in directories that belong to the account of a server. A symbolic link there must not direct
root to a different file. Every name is therefore opened relative to the descriptor of its directory, without
following links, and every change of owner uses a descriptor. `require_private` rejects directories that other
users could replace.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from orchestrator.embedded.accounts import Account
from orchestrator.errors import Misconfigured

OPEN: Final = os.O_NOFOLLOW | os.O_CLOEXEC
ADVICE: Final = "choose a different directory with --data-dir"
MAX_LINKS: Final = 40  # symbolic links in a path, as in Linux


class Directory:
    """An open directory."""

    def __init__(self, fd: int, path: Path, account: Account | None) -> None:
        """Create files for `account` (None: the current user)."""
        self.fd, self.path, self.account = fd, path, account

    def has(self, name: str) -> bool:
        """Whether an entry of any kind exists."""
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> str:
        """Return the content of a regular file.

        Raises:
            OSError: it does not exist, or is a symbolic link.
        """
        with os.fdopen(open_regular(name, os.O_RDONLY, dir_fd=self.fd)) as file:
            return file.read()

    def write(self, name: str, text: str, *, durable: bool = False) -> None:
        """Create or replace a file, readable by its owner only. `durable`: it is on disk afterwards."""
        scratch = f".{name}.{os.getpid()}"
        self.remove(scratch)
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN, 0o600, dir_fd=self.fd)
        with os.fdopen(fd, "w") as file:
            if self.account is not None:
                os.fchown(fd, self.account.uid, self.account.gid)
            file.write(text)
            if durable:
                file.flush()
                os.fsync(fd)
        os.rename(scratch, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a file or a link if it exists."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def adopt(self) -> None:
        """Give a directory that root created to the account.

        Raises:
            Misconfigured: the directory belongs to a different user.
        """
        owner = os.fstat(self.fd).st_uid
        account = self.account
        if owner == (os.geteuid() if account is None else account.uid):
            return
        if account is None or owner != 0:
            raise Misconfigured(f"{self.path} belongs to a different user (uid {owner}); {ADVICE}")
        os.fchown(self.fd, account.uid, account.gid)


@contextlib.contextmanager
def opened(path: Path, account: Account | None = None) -> Iterator[Directory]:
    """Open a directory for a block.

    Raises:
        Misconfigured: it is a symbolic link or no directory.
        OSError: it does not exist, or access is denied.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | OPEN)
    except NotADirectoryError as error:
        what = "a symbolic link" if path.is_symlink() else "not a directory"
        raise Misconfigured(f"{path} is {what}; {ADVICE}") from error
    try:
        yield Directory(fd, path, account)
    finally:
        os.close(fd)


def make(path: Path) -> None:
    """Create a directory for the current user, or check that it is one and belongs to that user.

    Raises:
        Misconfigured: it is a symbolic link, no directory, or belongs to a different user.
        OSError: it cannot be created.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    with opened(path) as directory:
        owner = os.fstat(directory.fd).st_uid
        if owner != os.geteuid():
            raise Misconfigured(f"{path} belongs to a different user (uid {owner}); {ADVICE}")


def open_regular(path: str | Path, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
    """Open a regular file without following a symbolic link; return its descriptor.

    Raises:
        OSError: it is a symbolic link or no regular file, or cannot be opened.
    """
    fd = os.open(path, flags | OPEN | os.O_NONBLOCK, mode, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"{path} is not a regular file")
    return fd


def require_private(path: Path) -> None:
    """Check that only the current user and root can replace or write the directory `path`.

    This holds if each directory and each symbolic link on the way belongs to one of them, and no other user
    has write permission, except in directories like /tmp, whose sticky bit protects the entries of others.

    Raises:
        Misconfigured: a different user could replace it or write to it.
    """
    owners = {0, os.geteuid()}
    links = 0
    place = Path(path.anchor)
    remaining = list(path.absolute().parts[1:])
    _require_protected(place, owners, last=not remaining)
    while remaining:
        name = remaining.pop(0)
        if name == "..":
            place = place.parent
            continue
        following = place / name
        status = following.lstat()
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if status.st_uid not in owners or links > MAX_LINKS:
                raise Misconfigured(f"{following} is a symbolic link of a different user; {ADVICE}")
            target = following.readlink()
            place = Path(target.anchor) if target.is_absolute() else place
            remaining = [*target.parts[1 if target.is_absolute() else 0 :], *remaining]
            continue
        place = following
        _require_protected(place, owners, last=not remaining)


def _require_protected(place: Path, owners: set[int], *, last: bool) -> None:
    status = place.lstat()
    allowed = {os.geteuid()} if last else owners
    if status.st_uid not in allowed:
        raise Misconfigured(f"{place} belongs to a different user (uid {status.st_uid}); {ADVICE}")
    mode = status.st_mode
    own_group = status.st_gid in {0, os.getegid()}
    writable = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not own_group)
    if writable and (last or not mode & stat.S_ISVTX):
        raise Misconfigured(f"{place} is writable by other users: run `chmod go-w {place}`, or {ADVICE}")
