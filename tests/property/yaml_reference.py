"""The value of a text by PyYAML's safe loader, in terms of JSON: dates and keys are strings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import yaml

Path = tuple[str | int, ...]
Place = tuple[int, int]

MERGE = "tag:yaml.org,2002:merge"


class Reference(yaml.CSafeLoader):
    """PyYAML's safe loader, dates apart; a key is the text that JSON writes for it."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        self.flatten_mapping(node)
        result = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, dict | list):
                raise yaml.constructor.ConstructorError(None, None, "unhashable key", key_node.start_mark)
            result[_text(key)] = self.construct_object(value_node, deep=True)
        return result

    def number(self, node: Any) -> Any:
        """Return a number that JSON can carry: an integer of 64 bits, a finite float."""
        tag = node.tag.rpartition(":")[2]
        value = self.construct_yaml_int(node) if tag == "int" else self.construct_yaml_float(node)
        if not (-(2**63) <= value < 2**64 if tag == "int" else math.isfinite(value)):
            raise ValueError(f"{node.value} is beyond what JSON carries")
        return value


Reference.add_constructor("tag:yaml.org,2002:timestamp", yaml.CSafeLoader.construct_yaml_str)
Reference.add_constructor("tag:yaml.org,2002:int", Reference.number)
Reference.add_constructor("tag:yaml.org,2002:float", Reference.number)


def read(text: str | bytes) -> Any:
    """Return the document, None for an empty text.

    Raises:
        yaml.YAMLError: the text is not YAML.
        ValueError, LookupError: a scalar contradicts its spelling or tag, or has no JSON form.
    """
    return yaml.load(text, Loader=Reference)


def places(text: str | bytes) -> dict[Path, Place]:
    """Return the location of each key and each list item, line and column counted from 1.

    For a duplicate key the later location counts; nodes repeated by an alias have no location of their own.
    """
    loader = Reference(text)
    try:
        root = loader.get_single_node()
        return dict(_places(loader, root, (), set())) if root is not None else {}
    finally:
        loader.dispose()


def given_twice(text: str | bytes) -> list[Place]:
    """Return where keys are that their map has had already, in the order of the text."""
    loader = Reference(text)
    try:
        twice = []
        todo, observed = [loader.get_single_node()], set()
        while todo:
            node = todo.pop()
            if id(node) in observed or not isinstance(node, yaml.CollectionNode):
                continue
            observed.add(id(node))
            had = set()
            for item in node.value:
                key, value = item if isinstance(node, yaml.MappingNode) else (None, item)
                todo.append(value)
                if key is None or key.tag == MERGE:
                    continue
                name = _text(loader.construct_object(key, deep=True))
                if name in had:
                    twice.append(_place(key))
                had.add(name)
        return sorted(twice)
    finally:
        loader.dispose()


def _places(
    loader: Reference, node: yaml.Node, path: Path, observed: set[int]
) -> Iterator[tuple[Path, Place]]:
    if id(node) in observed:
        return
    observed.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if id(key) in observed:
                continue
            observed.add(id(key))
            below = (*path, "<<" if key.tag == MERGE else _text(loader.construct_object(key, deep=True)))
            yield below, _place(key)
            yield from _places(loader, value, below, observed)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            if id(value) not in observed:
                yield (*path, index), _place(value)
            yield from _places(loader, value, (*path, index), observed)


def _place(node: yaml.Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)
