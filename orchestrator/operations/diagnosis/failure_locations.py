"""Source locations of failed resources in the templates of nested stacks. Those templates are among the files
of the parent stack; the text of a root template is not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.json_types import JsonMapping
from orchestrator.operations.diagnosis.failure_tree import FailureNode
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import history
from orchestrator.store.stacks.revisions import content_size, read_content
from orchestrator.template.diagnostics import excerpt, source_lines
from orchestrator.template.resource_registry_entries import RESOURCES
from orchestrator.template.source_locator import locate

SECTIONS = (RESOURCES, "Resources")  # of HOT, and of the CloudFormation formats


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A resource in a file: line and column count from 1."""

    file: str
    line: int
    column: int
    excerpt: str


@dataclass(slots=True)
class FailureLocator:
    """Finds locations in files; each file is read once."""

    database: Database
    max_bytes: int  # maximum size of a file to read
    _texts: dict[str, bytes | None] = field(default_factory=dict)

    def leaves(self, nodes: list[FailureNode]) -> Iterator[tuple[FailureNode, SourceLocation | None]]:
        """Yield the leaves of failure trees, each with its location if known."""
        todo: list[tuple[FailureNode, FailureNode | None]] = [(node, None) for node in reversed(nodes)]
        while todo:
            node, above = todo.pop()
            if not node.causes:
                yield node, None if above is None else self._place(node, above)
            todo += [(cause, node) for cause in reversed(node.causes)]

    def _place(self, node: FailureNode, above: FailureNode) -> SourceLocation | None:
        """Return the location of the failed resource in its stack's template; `above` is the parent's
        failure.
        """
        row = above.row
        revision = history.numbered(self.database, above.stack, row.revision) if row.revision else None
        if revision is None or row.resource_type is None:
            return None
        registry: JsonMapping = revision.environment.get("resource_registry") or {}
        name = registry.get(row.resource_type, row.resource_type)
        hash_ = revision.files.get(name) if isinstance(name, str) else None
        text = self._text(hash_) if hash_ else None
        if text is None:
            return None
        places = [(section, node.row.resource_name) for section in SECTIONS]
        locations = locate(text, places)
        for section, key in places:
            location = locations.get((section, key))
            if location is not None and location != locations.get((section,)) and location != (1, 1):
                line, column = location
                return SourceLocation(str(name), line, column, excerpt(source_lines(text), line, column)[0])
        return None

    def _text(self, hash_: str) -> bytes | None:
        if hash_ not in self._texts:
            digest = bytes.fromhex(hash_)
            small = content_size(self.database, digest) <= self.max_bytes
            self._texts[hash_] = b"".join(read_content(self.database, digest)) or None if small else None
        return self._texts[hash_]
