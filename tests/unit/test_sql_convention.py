"""All SQL is in the store (orchestrator/store/adr/0001)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORE = ROOT / "orchestrator" / "store"
SQL = re.compile(
    r"\s*(SELECT\s|WITH\s+(RECURSIVE\s+)?\w+ AS|INSERT INTO\s|DELETE FROM\s|UPDATE\s+\S+\s+(\w+\s+)?SET\s"
    r"|SET\s+\w+ *(=|TO)|(CREATE|DROP|ALTER)\s+(TABLE|INDEX|DATABASE|ROLE)\s|TRUNCATE\s|VACUUM\s"
    r"|COPY\s\w+ \(|LISTEN\s|NOTIFY\s|LOCK\s)"
)
# Exceptions and types: nothing in them builds a statement.
HARMLESS_MODULES = {
    "psycopg.errors",
    "psycopg.rows",
    "psycopg.types.json",
    "sqlalchemy.exc",
    "sqlalchemy.pool",
}
HARMLESS_NAMES = {"Connection", "Error", "OperationalError", "errors"}
MODULES = sorted(
    path
    for package in ("orchestrator", "api", "tasks")
    for path in (ROOT / package).rglob("*.py")
    if STORE not in path.parents
)


def sql_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the SQL texts, and the imports that statements are built with: line and text."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if SQL.match(text):
                yield node.lineno, text.strip().splitlines()[0]
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names if is_builder(name.name))
            case ast.ImportFrom(module="psycopg" | "sqlalchemy" as module, names=names):
                imported = [name.name for name in names if name.name not in HARMLESS_NAMES]
                yield from ((node.lineno, f"{module}.{name}") for name in imported)
            case ast.ImportFrom(module=str() as module) if is_builder(module):
                yield node.lineno, module


def is_builder(module: str) -> bool:
    package = module.partition(".")[0]
    return package in {"psycopg", "sqlalchemy"} and module not in {package, *HARMLESS_MODULES}


@pytest.mark.parametrize("text", ["SELECT 1 FROM stack", "\nUPDATE stack s SET x = 1", "SET jit = off"])
def test_sql_is_recognised(text: str) -> None:
    assert list(sql_of(ast.parse(f"X = {text!r}")))


@pytest.mark.parametrize("text", ["UPDATE", "CREATE or DELETE.", "SELECT", "with x as"])
def test_prose_is_no_sql(text: str) -> None:
    assert not list(sql_of(ast.parse(f"X = {text!r}")))


def test_no_module_outside_the_store_has_sql() -> None:
    result = {
        f"{path.relative_to(ROOT)}:{line}": text
        for path in MODULES
        for line, text in sql_of(ast.parse(path.read_text()))
    }
    assert not result
