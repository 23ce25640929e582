"""How one resource of a type is made for the contract, where that cannot be guessed from its schema.

Put a module here with `SAMPLES`, a sequence of `Sample`: every module is read. A type without a sample has
its required properties made up. `orchestrator/testing/samples.py` says what a sample may hold.
"""

from __future__ import annotations

import importlib
import pkgutil

from orchestrator.testing.samples import Sample
from tests.contract.operated import PROPERTIES


def samples() -> dict[str, Sample]:
    """Return the samples by type."""
    found = {name: Sample(name, properties) for name, properties in PROPERTIES.items()}
    for module in pkgutil.iter_modules(__path__):
        for sample in importlib.import_module(f"{__name__}.{module.name}").SAMPLES:
            assert found.setdefault(sample.type, sample) is sample, f"two samples of {sample.type}"
    return found
