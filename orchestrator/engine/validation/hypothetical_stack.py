"""A stack before it is made, as the functions of its template see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.template.definition import StackDefinition
from orchestrator.template.function_view import UNKNOWN, ResourceProxy
from orchestrator.template.functions import Function, FunctionError
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

# What functions see of any resource here: not created, and known by nothing that could be compared.
_UNMADE: Final = ResourceProxy("", UNKNOWN, {}, "INIT", "COMPLETE")  # type: ignore[arg-type]


class HypotheticalStack(StackDefinition):
    """A stack of which no resource is made yet: whatever comes from one is `UNKNOWN`."""

    def __init__(
        self,
        template: Template,
        parameters: ParameterValues,
        files: Mapping[str, str],
        *,
        nested: bool = False,
    ) -> None:
        """What is asked of the parent of a `nested` stack is not known."""
        super().__init__(
            template.version, parameters, {}, files.get, strict=False, mappings=template.mappings
        )
        self._names, self._nested = template.resources, nested
        self.missed: str | None = None  # the parameter without a value that was asked for last

    def resource(self, name: str) -> ResourceProxy:
        """Return the one proxy that stands for all."""
        if name not in self._names:
            return super().resource(name)  # which refuses it
        self.not_yet()  # so that what is made of this is not known either
        self.used_uncreated = True
        return _UNMADE

    def reference(self, name: str) -> Any:
        """Return a parameter's value; a resource's id is not known."""
        return self.resource(name).reference_id if name in self._names else super().reference(name)

    def missing(self, name: str) -> Any:
        """Return what stands for a parameter without a value, and remember which it was."""
        self.missed = name
        return super().missing(name)

    def facade(self, key: str) -> Any:
        """Return what is not known, in a nested stack."""
        return self.not_yet() if self._nested else super().facade(key)

    def _call(self, function: Function, written: Any) -> Any:
        try:
            return super()._call(function, written)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            # Malformed, which was told when the template was read; here it is met again.
            raise FunctionError(f'Incorrect arguments to "{function.name}"') from error
