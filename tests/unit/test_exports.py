"""Every name that a module exports is defined."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import api
import orchestrator
import tasks

PACKAGES = (orchestrator, api, tasks)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_exported_names_are_defined(package: ModuleType) -> None:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if found.ispkg
    ]
    undefined = [
        f"{module.__name__}.{name}"
        for module in modules
        for name in getattr(module, "__all__", ())
        if not hasattr(module, name)
    ]
    assert undefined == []
