"""The table of types in docs/collection-types.md."""

from __future__ import annotations

import re
from collections import defaultdict

from tools.code_metrics import FEW_METHOD_LINES, ROOT, method_lines_of_types, modules

ROW = re.compile(r"\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (.*) \|")


def rows() -> list[str]:
    """Return the rows of the table, as the code has them."""
    services: dict[str, dict[str, int]] = defaultdict(dict)
    found = method_lines_of_types(modules(("orchestrator/resources/openstack",)))
    for name, lines in found.items():
        _, service, kind = name.split("::")
        services[service][kind] = lines
    total = _row("All", found, str(sum(map(_has_many, found.values()))))
    return [*(_row(*item) for item in services.items()), total]


def _row(service: str, types: dict[str, int], more: str = "") -> str:
    many = [kind for kind, lines in types.items() if _has_many(lines)]
    none = sum(not lines for lines in types.values())
    few = len(types) - none - len(many)
    return f"| {service} | {len(types)} | {none} | {few} | {more or ', '.join(many) or '–'} |"


def _has_many(lines: int) -> bool:
    return lines > FEW_METHOD_LINES


def test_the_table_has_the_types_of_each_service() -> None:
    page = (ROOT / "docs" / "collection-types.md").read_text()
    assert [line for line in page.splitlines() if ROW.fullmatch(line)] == rows()
