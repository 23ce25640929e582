"""Deprecated names of the plugin API: they keep working and emit a DeprecationWarning.

The API for plugins is a public promise (docs/plugins.md "Stability", docs/language-plugins.md): a deprecated
name keeps working for at least two minor releases. `tests/contract/test_frozen_plugin.py` runs plugins that
were written against earlier versions of these pages.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Emit the warning; `stacklevel` 3 names the caller of the caller."""
    warnings.warn(f"{old} is deprecated, use {new}", DeprecationWarning, stacklevel=stacklevel)


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module in which `names` (old to new) were renamed."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", f"{module}.{names[name]}")
        return getattr(import_module(module), names[name])

    return find


def moved_module(old: str, new: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that was moved from `old` to `new`."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(import_module(new), name)
        warn_renamed(f"{old}.{name}", f"{new}.{name}")
        return value

    return find


class RenamedAttribute:
    """The old name of an attribute or method."""

    def __init__(self, old: str, new: str) -> None:
        """`old` is looked up as `new`."""
        self._old, self._new = old, new

    def __get__(self, instance: object | None, owner: type) -> Any:
        """Return the attribute under its new name."""
        warn_renamed(f"{owner.__name__}.{self._old}", f"{owner.__name__}.{self._new}")
        holders = [cls for cls in owner.__mro__ if self._old in vars(cls)]
        if instance is not None and vars(holders[0])[self._old] is not self:
            # An overriding method calls it through `super()`.
            return getattr(super(holders[-2], instance), self._new)
        return getattr(owner if instance is None else instance, self._new)


def renamed_attributes(**names: str) -> Callable[[C], C]:
    """Return a class decorator that keeps old names of attributes readable: ``old="new"``."""

    def decorate(cls: C) -> C:
        for old, new in names.items():
            setattr(cls, old, RenamedAttribute(old, new))
        return cls

    return decorate


def renamed_fields(**names: str) -> Callable[[C], C]:
    """Return a decorator that also accepts the old names of a dataclass's fields as keyword arguments."""

    def decorate(cls: C) -> C:
        initialize = cls.__init__  # type: ignore[misc]

        @wraps(initialize)
        def accept_old_names(self: Any, *args: object, **options: object) -> None:
            try:
                initialize(self, *args, **options)
            except TypeError:
                renamed = names.keys() & options.keys()
                if not renamed:
                    raise
                for old in renamed:
                    warn_renamed(f"{cls.__name__}({old}=…)", f"{names[old]}=…")
                    options[names[old]] = options.pop(old)
                initialize(self, *args, **options)

        cls.__init__ = accept_old_names  # type: ignore[misc]
        return renamed_attributes(**names)(cls)

    return decorate


def adopt_renamed_methods(cls: type, names: Mapping[str, str]) -> None:
    """Let a subclass that overrides methods under their old names override the new ones."""
    for old in names.keys() & vars(cls).keys():
        warn_renamed(f"{cls.__qualname__}.{old}", f"{cls.__qualname__}.{names[old]}", stacklevel=4)
        setattr(cls, names[old], vars(cls)[old])
