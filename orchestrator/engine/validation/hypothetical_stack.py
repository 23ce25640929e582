"""A stack before it is created, as the functions of its template see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from orchestrator.template.definition import StackDefinition
from orchestrator.template.function_view import UNKNOWN, ResourceProxy
from orchestrator.template.functions import Function, FunctionError
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

# The state of every resource: not created, with a value that equals no other.
_NEVER_CREATED: Final = replace(ResourceProxy.uncreated(""), reference_id=UNKNOWN)  # type: ignore[arg-type]


class HypotheticalStack(StackDefinition):
    """A stack without any created resource: all values from resources are `UNKNOWN`."""

    def __init__(
        self,
        template: Template,
        parameters: ParameterValues,
        files: Mapping[str, str],
        *,
        nested: bool = False,
    ) -> None:
        """If `nested`, values of the parent stack are unknown."""
        super().__init__(
            template.version, parameters, {}, files.get, strict=False, mappings=template.mappings
        )
        self._names, self._nested = template.resources, nested
        self.missed: str | None = None  # the last parameter read that has no value

    def resource(self, name: str) -> ResourceProxy:
        """Return the proxy that stands for all resources."""
        if name not in self._names:
            return super().resource(name)  # refuses it
        self.not_yet()  # marks all values derived from it as unknown
        self.used_uncreated = True
        return _NEVER_CREATED

    def reference(self, name: str) -> Any:
        """Return a parameter's value; the id of a resource is unknown."""
        return self.resource(name).reference_id if name in self._names else super().reference(name)

    def missing(self, name: str) -> Any:
        """Return the placeholder for a parameter without a value, and record its name."""
        self.missed = name
        return super().missing(name)

    def facade(self, key: str) -> Any:
        """Return UNKNOWN in a nested stack."""
        return self.not_yet() if self._nested else super().facade(key)

    def _call(self, function: Function, written: object) -> Any:
        try:
            return super()._call(function, written)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            # Malformed: reported when the template was parsed.
            raise FunctionError(f'Incorrect arguments to "{function.name}"') from error
