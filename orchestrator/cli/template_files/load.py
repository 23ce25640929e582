"""From files on this machine to the body of a request: template, environments, and the files they reference.

The template and a single environment are sent as text, so that the server reports errors with line numbers;
several environments are sent as `environment_files` and merged by the server. A file is sent under the name
by which it is referenced, relative to the referencing text: `get_file` and `type` in a template, the
templates of `resource_registry` in an environment. If two texts use the same name for different files, the
later reference, never a reference in the template itself, gets a new name: the file's path from the
template's folder, or its `file:` URL if that path is in use as well.

A template from standard input may come from a stranger: only files below the current directory are sent with
it.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from orchestrator.cli.exit_codes import OPTION, Failure
from orchestrator.cli.template_files.references import (
    FileReference,
    is_template,
    named_in_environment,
    named_in_template,
    renamed,
)
from orchestrator.json_types import JsonMapping, JsonObject

STDIN = Path("-")


@dataclass(frozen=True, slots=True)
class Source:
    """A template with its path, its text and the files it references."""

    path: Path
    text: str
    files: Mapping[str, str]
    paths: Mapping[str, Path] = field(default_factory=dict)  # absolute paths of the files


def read_template(path: Path) -> Source:
    """Read a template (`-`: standard input) and every file that it or a nested template references."""
    text = read_text(path, "template")
    collector = FileCollector(_absolute(path).parent, confined=path == STDIN)
    collector.add_references(named_in_template(text), _absolute(path), text, display_path(path))
    collector.read_nested()
    return Source(display_path(path), text, collector.files, collector.paths)


def request_body(
    source: Source, environments: Sequence[Path], parameters: JsonMapping, **fields: object
) -> JsonObject:
    """Return the body of a create or validate request, without those values of `fields` that are None.

    The parameters override all environments.
    """
    collector = FileCollector(_absolute(source.path).parent, dict(source.files), dict(source.paths))
    body: JsonObject = {"template": source.text}
    if len(environments) == 1:
        body["environment"] = collector.environment(environments[0])
    elif environments:
        body["environment_files"] = [collector.environment_file(path) for path in environments]
        body["parameters_win"] = True
    collector.read_nested()
    if parameters:
        body["parameters"] = dict(parameters)
    if collector.files:
        body["files"] = collector.files
    return body | {key: value for key, value in fields.items() if value is not None}


def texts(environments: Sequence[Path], body: JsonMapping) -> dict[str, tuple[str, str]]:
    """Return display name and text of each file of a request except the template, by its name there."""
    sources = {name: (name, text) for name, text in body.get("files", {}).items()}
    if isinstance(environment := body.get("environment"), str):
        sources["environment"] = (str(display_path(environments[0])), environment)
    if body.get("parameters"):
        sources.setdefault("parameters", (OPTION, ""))
    return sources


@dataclass(slots=True)
class FileCollector:
    """The files found so far, each under a unique name."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    pending: deque[str] = field(default_factory=deque)  # templates whose references are not read yet
    missing: list[str] = field(default_factory=list)  # an error for each unreadable environment or reference
    confined: bool = False  # to the files below `root`

    def environment(self, path: Path) -> str:
        """Return the text of an environment, and add the templates it references.

        An unreadable environment counts as empty, until `read_nested` reports it.
        """
        try:
            text = read_text(path, "environment")
        except Failure as failure:
            self.missing.append(failure.message)
            return ""
        references = named_in_environment(text)
        return renamed(text, self.add_references(references, _absolute(path), text, display_path(path)))

    def environment_file(self, path: Path) -> str:
        """Add an environment as a file; return its name."""
        name, _ = self._name(path.as_posix(), _absolute(path))
        self.files[name] = self.environment(path)
        return name

    def read_nested(self) -> None:
        """Read the references of the nested templates, to any depth.

        Raises:
            Failure: files cannot be read; lists all of them, with the places of references.
        """
        while self.pending:
            name = self.pending.popleft()
            text, path = self.files[name], self.paths[name]
            self.files[name] = renamed(
                text, self.add_references(named_in_template(text), path, text, Path(name))
            )
        if len(self.missing) == 1:
            raise Failure(self.missing[0])
        if self.missing:
            details = [f"  {error}" for error in self.missing]
            raise Failure(f"{len(self.missing)} files cannot be read", details=details)

    def add_references(
        self, references: Iterable[FileReference], user: Path, text: str, shown: Path
    ) -> list[tuple[FileReference, str]]:
        """Read the files that the file `user` references; return the references that need a new name.

        `text` is the text of `user`, and `shown` its name in error messages.
        """
        changes = []
        for reference in references:
            target = _local(reference, user)
            if isinstance(target, str):  # a URL, which the server fetches
                name = target
            else:
                name, new = self._name(reference.name, target)
                if new:
                    self._read(name, target, reference, f"{shown}{_position(reference, text)}")
            if name != reference.name:
                changes.append((reference, name))
        return changes

    def _read(self, name: str, path: Path, reference: FileReference, place: str) -> None:
        if self.confined and not path.resolve().is_relative_to(self.root.resolve()):
            self.missing.append(
                f"{place}: a template from standard input cannot reference {path}, which is outside of "
                f"{self.root}. Read the template, save it as a file, and use that."
            )
            return
        try:
            text = self.files[name] = read_text(path, "file")
        except Failure as failure:
            self.missing.append(f"{place}: {failure.message}")
            return
        if reference.template or is_template(text):
            self.pending.append(name)

    def _name(self, name: str, path: Path) -> tuple[str, bool]:
        """Return a unique name for a file, `name` itself if possible, and whether the file is new."""
        for free in (name, Path(os.path.relpath(path, self.root)).as_posix()):
            if self.paths.get(free, path) == path:
                name = free
                break
        else:
            name = path.as_uri()
        new = name not in self.paths
        self.paths[name] = path
        return name, new


def display_path(path: Path) -> Path:
    """Return the path shown in messages."""
    return Path("<stdin>") if path == STDIN else path


def read_text(path: Path, label: str) -> str:
    """Return the text of a file, or of standard input for the path `-`.

    Raises:
        Failure: it cannot be read, or is not UTF-8.
    """
    try:
        if path == STDIN:
            text = sys.stdin.read()
            if not text:
                raise Failure(f"standard input is empty: no {label} to read")
            return text
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot read the {label} {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"the {label} {display_path(path)} is not UTF-8 text") from error
    except ValueError as error:  # a name that no path can have
        raise Failure(f"cannot read the {label} {str(path)!r}: {error}") from error


def _position(reference: FileReference, text: str) -> str:
    """Return `:line:column` of a reference in a YAML text."""
    if reference.span is None:
        return ""
    before = text[: reference.span[0]]
    return f":{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def _local(reference: FileReference, user: Path) -> Path | str:
    """Return the path that a reference means, or its URL if it is not on this machine."""
    base = reference.base
    address = (
        urljoin(base if base.endswith("/") else f"{base}/", reference.name)
        if "://" in base
        else reference.name
    )
    if "://" not in address:
        return _absolute(user.parent / base / address)
    parts = urlsplit(address)
    return _absolute(Path(unquote(parts.path))) if parts.scheme == "file" else address


def _absolute(path: Path) -> Path:
    """Return the absolute path without `..`; symbolic links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - unlike absolute(), this resolves ".."
