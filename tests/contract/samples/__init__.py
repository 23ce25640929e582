"""Samples for the contract: resources of types whose required values cannot be derived from the schema.

Add a module with `SAMPLES`, a sequence of `Sample`: every module is read. For a type without a sample the
required properties are generated. `orchestrator/testing/samples.py` documents the fields of a sample.
"""

from __future__ import annotations

import importlib
import pkgutil

from orchestrator.testing.samples import Sample
from tests.contract.operated import PROPERTIES


def samples() -> dict[str, Sample]:
    """Return the samples by type."""
    result = {name: Sample(name, properties) for name, properties in PROPERTIES.items()}
    for module in pkgutil.iter_modules(__path__):
        for sample in importlib.import_module(f"{__name__}.{module.name}").SAMPLES:
            assert result.setdefault(sample.type, sample) is sample, f"two samples of {sample.type}"
    return result
