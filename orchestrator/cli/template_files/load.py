"""From files on this machine to the body of a request: template, environments, and the files they name.

The template and a single environment travel as text, so that the server can point at their lines; several
environments travel as `environment_files`, for the server to merge. A file is sent under the very name that
is used for it, which is read relative to the text that uses it: in a template `get_file` and `type`, in an
environment the templates of its `resource_registry`. Where two texts mean different files by one name, the
one met later, never the template itself, is sent with another name in that place: the file's path from the
template's folder, or its `file:` URL should that be taken as well.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.template_files.references import (
    FileReference,
    is_template,
    named_in_environment,
    named_in_template,
    renamed,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A template as read: where from, its text, and what is sent along with it."""

    path: Path
    text: str
    files: Mapping[str, str]
    paths: Mapping[str, Path] = field(default_factory=dict)  # of the files, absolute


def read_template(path: Path) -> Source:
    """Read a template and every file that it, or a template nested in it, names."""
    text = _read(path, "template")
    gathering = FileCollector(_absolute(path).parent)
    gathering.claim(named_in_template(text), _absolute(path))
    gathering.follow()
    return Source(path, text, gathering.files, gathering.paths)


def request_body(
    source: Source, environments: Sequence[Path], parameters: Mapping[str, Any], **more: object
) -> dict[str, Any]:
    """Return the body of a create or validate request; values of `more` that are None are left out.

    The parameters beat the environments, however many there are.
    """
    gathering = FileCollector(_absolute(source.path).parent, dict(source.files), dict(source.paths))
    body: dict[str, Any] = {"template": source.text}
    if len(environments) == 1:
        body["environment"] = gathering.environment(environments[0])
    elif environments:
        body["environment_files"] = [gathering.environment_file(path) for path in environments]
        body["parameters_win"] = True
    gathering.follow()
    if parameters:
        body["parameters"] = dict(parameters)
    if gathering.files:
        body["files"] = gathering.files
    return body | {key: value for key, value in more.items() if value is not None}


def texts(environments: Sequence[Path], body: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return, by the name the server knows it by, what to call each text of a request and the text itself.

    The template, which needs no name, is not among them.
    """
    known = {name: (name, text) for name, text in body.get("files", {}).items()}
    if isinstance(environment := body.get("environment"), str):
        known["environment"] = (str(environments[0]), environment)
    return known


@dataclass(slots=True)
class FileCollector:
    """The files found so far, each with a name of its own."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    waiting: deque[str] = field(default_factory=deque)  # templates among the files, to be looked into

    def environment(self, path: Path) -> str:
        """Return an environment's text, its templates gathered."""
        text = _read(path, "environment")
        return renamed(text, self.claim(named_in_environment(text), _absolute(path)))

    def environment_file(self, path: Path) -> str:
        """Gather an environment as one of the files; return its name."""
        at = _absolute(path)
        name, _ = self._name(path.as_posix(), at)
        self.files[name] = self.environment(path)
        return name

    def follow(self) -> None:
        """Gather what the templates found name in their turn."""
        while self.waiting:
            name = self.waiting.popleft()
            text = self.files[name]
            self.files[name] = renamed(text, self.claim(named_in_template(text), self.paths[name]))

    def claim(self, places: Iterable[FileReference], user: Path) -> list[tuple[FileReference, str]]:
        """Read the files named in the text of the file `user`; return where it must say another name."""
        changes = []
        for place in places:
            at = _local(place, user)
            if isinstance(at, str):  # the server decides what it fetches
                name = at
            else:
                name, new = self._name(place.name, at)
                if new:
                    text = self.files[name] = _read(at, f"file named by {user}")
                    if place.template or is_template(text):
                        self.waiting.append(name)
            if name != place.name:
                changes.append((place, name))
        return changes

    def _name(self, name: str, at: Path) -> tuple[str, bool]:
        """Return a name that no other file has, `name` itself if possible, and whether it is new."""
        for free in (name, Path(os.path.relpath(at, self.root)).as_posix()):
            if self.paths.get(free, at) == at:
                name = free
                break
        else:
            name = at.as_uri()
        new = name not in self.paths
        self.paths[name] = at
        return name, new


def _local(place: FileReference, user: Path) -> Path | str:
    """Return the file a place means, or its address when it is not on this machine."""
    address = (
        urljoin(place.base if place.base.endswith("/") else f"{place.base}/", place.name)
        if ("://" in place.base)
        else place.name
    )
    if "://" not in address:
        return _absolute(user.parent / place.base / address)
    parts = urlsplit(address)
    return _absolute(Path(unquote(parts.path))) if parts.scheme == "file" else address


def _absolute(path: Path) -> Path:
    """Return one spelling for each path, symbolic links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - unlike absolute(), this resolves ".."


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot read the {what} {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"the {what} {path} is not UTF-8 text") from error
    except ValueError as error:  # no path can have this name
        raise Failure(f"cannot read the {what} {str(path)!r}: {error}") from error
