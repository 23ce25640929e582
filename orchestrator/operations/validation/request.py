"""Validate a request before any row is written.

Faults of the language, of parameters, of resource types, and cycles are searched for in turn, each as far as
earlier faults permit, and reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.config import Settings
from orchestrator.engine.validation.implicit_requirements import with_implicit
from orchestrator.engine.validation.nested_faults import nested_cycles, not_yet_reported
from orchestrator.engine.validation.template import Inquire, validate_stack
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.json_types import JsonMapping
from orchestrator.logs import logger
from orchestrator.lookups.request import RequestLookups
from orchestrator.operations.context import OperationContext
from orchestrator.operations.events.event_sinks import validate_sinks
from orchestrator.operations.fetching import PausingFetcher
from orchestrator.operations.keystone.delegated_credentials import cloud_of_caller
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters
from orchestrator.operations.validation.cloud_services import services_of_caller
from orchestrator.operations.validation.fault_places import MAX_SHOWN_FAULTS, located
from orchestrator.operations.validation.heat_error_order import heat_first
from orchestrator.operations.validation.observation_policy import policy_faults
from orchestrator.operations.validation.provider_checks import provider_checks
from orchestrator.schema.custom import cloud_checks
from orchestrator.schema.safe_regex import matching_budget
from orchestrator.security.policy import TypePermission, policy_of
from orchestrator.template.environment import Environment
from orchestrator.template.environment_files import merge_environment_files, schemas_in, without_secrets
from orchestrator.template.function_view import ParentResourceProxy
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.global_environment import global_environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Draft, FaultyTemplate, Template, read

log = logger()

# These depend on values, or matter only for a stack that is created: without values they are warnings.
ONLY_WITH_VALUES: Final = frozenset(
    {
        "wrong-value",
        "missing-property",
        "unknown-parameter",
        "unknown-name",
        "unknown-mapping",
        "function-error",
        "reserved-name",
    }
)


EXPRESSIONS_SECONDS: Final = 20.0  # for all expressions in a request's template
BAD_REQUEST: Final = "HTTPBadRequest"  # error type of a request that cannot be parsed
VALUES: Final = frozenset({"invalid-parameter"})  # of parameters, which may still change


@dataclass(frozen=True, slots=True)
class ValidatedRequest:
    """A valid request."""

    document: JsonMapping  # the template as data
    template: Template
    environment: Environment
    values: ParameterValues
    kinds: TypeResolver
    files: Mapping[str, str]  # the request's, without environments that contain secrets, and fetched files
    warnings: Sequence[Diagnostic]

    @property
    def needs_admin(self) -> bool:
        """Whether a type of the content is reserved to administrators."""
        return needs_admin(self.kinds)


def needs_admin(kinds: TypeResolver) -> bool:
    """Return whether a type that was resolved is reserved to administrators."""
    authorize = kinds.type_environment.authorize
    return isinstance(authorize, TypePermission) and authorize.needs_admin


@time_budget(EXPRESSIONS_SECONDS)
@matching_budget()
def validate_request(
    context: OperationContext,
    request: StackRequest,
    *,
    stack_uuid: str,
    strict: bool = True,
    overlook: bool = False,
    parent: ParentResourceProxy | None = None,
    hide: Collection[str] = (),
    depth: int = 0,
    lookups: bool = True,
) -> ValidatedRequest:
    """Return the parts of a valid request. If `strict`, parameter values must be complete.

    `overlook` accepts known but unavailable types, without a check of their properties. `parent` is the
    resource that the stack belongs to, `depth` its nesting depth; `hide` lists parameters whose values are
    secret in any case. `lookups` lets constraints query the caller's cloud. Unless `strict`, faults that
    depend on values are warnings, marked as `refused` by a create; with `lookups` all of them are searched.

    Raises:
        Forbidden: the caller may not use a type of the template or of a nested template.
        InvalidTemplate: with every fault; the first fault is the one that Heat would report.
        LimitExceeded: the template is too large or has too many resources.
    """
    environment_warnings: list[Diagnostic] = []
    draft, environment, files = _parse(context.settings, request, environment_warnings)
    caller = context.caller
    cloud = cloud_of_caller(context.settings, caller)
    check = _Check(
        draft,
        environment,
        pseudo_parameters(stack_uuid, request.stack_name, caller.project_id, draft.form),
        kinds_of(context, environment, files, overlook=overlook, depth=depth),
        strict,
        parent,
        hide,
        _timeout_seconds(request, context.settings),
        provider_checks(context, environment, files, cloud) if strict or lookups else None,
    )
    checked = _with_lookups(check.run, cloud if lookups else None, caller.project_id)
    found = [*checked.faults, *policy_faults(context, request, environment)]
    errors = heat_first([fault for fault in found if fault.severity == "error"], draft.form.keywords)
    faults = located([*errors, *_warnings(found)], request, draft, Limits.of(context.settings))
    warnings = (*environment_warnings, *checked.template.warnings, *_warnings(faults))
    _raise_errors(faults, warnings if strict or lookups else ())
    files = {**files, **check.kinds.type_environment.templates.fetched}
    return ValidatedRequest(
        draft.document, checked.template, environment, checked.values, check.kinds, files, warnings
    )


@dataclass(frozen=True, slots=True)
class _Checked:
    """A request with its faults."""

    template: Template
    values: ParameterValues
    faults: list[Diagnostic]


@dataclass(frozen=True, slots=True)
class _Check:
    """The checks of a request that depend on values; they may be run again."""

    draft: Draft
    environment: Environment
    pseudo: Mapping[str, str]
    kinds: TypeResolver
    strict: bool
    parent: ParentResourceProxy | None
    hide: Collection[str]
    timeout_seconds: float
    inquire: Inquire | None

    def run(self) -> _Checked:
        """Return the template with its values, and all faults.

        Raises:
            LimitExceeded: the template has too many resources.
        """
        values, faults, complete = _values(
            self.draft, self.environment, self.pseudo, strict=self.strict, parent=self.parent, hide=self.hide
        )
        # The value of a parameter with a faulty declaration is unknown: that is no fault of its users.
        unreadable = self.draft.declared - self.draft.parameters.keys()
        if unreadable:
            values = ParameterValues(dict(values), values.hidden, values.missing | unreadable)
        template, broken = _define(self.draft, values if complete and not unreadable else None)
        if not self.strict:
            broken = [_as_warning(fault, ONLY_WITH_VALUES) for fault in broken]
            faults = [_as_warning(fault, VALUES) for fault in faults]
        faults = broken + _not_yet_reported(broken, faults)
        if len(template.resources) > self.kinds.type_environment.max_resources:
            raise LimitExceeded("Maximum resources per stack exceeded.")
        try:
            template = with_implicit(template, self.kinds)
            found_faults = validate_stack(
                template,
                values,
                self.kinds,
                strict=self.strict,
                stack_timeout_seconds=self.timeout_seconds,
                inquire=None if broken else self.inquire,
            )
            faults += _not_yet_reported(faults, [*nested_cycles(template), *found_faults])
        except (TypeError, ValueError, LookupError, AttributeError):
            if not broken:
                raise
            # further checks of an invalid template may fail
            log.info("validation_interrupted", fault=faults[0].message)
        return _Checked(template, values, faults)


def _with_lookups(check: Callable[[], _Checked], cloud: Cloud | None, project_id: str) -> _Checked:
    """Return the result of a check in which the constraints of services query the caller's cloud: the check
    is repeated if they report faults.
    """
    if cloud is None:
        return check()
    lookups = RequestLookups(cloud, project_id)
    with cloud_checks(lookups.check):
        checked = check()
        return check() if lookups.answer() else checked


def _parse(
    settings: Settings, request: StackRequest, warnings: list[Diagnostic]
) -> tuple[Draft, Environment, Mapping[str, str]]:
    """Return the request's template, its environment, and the files to store; `warnings` collects those
    about environments.
    """
    limits = Limits.of(settings)
    _check_size(request, settings.max_template_size)
    assert request.template is not None
    draft = _read(request.template, limits)
    environment, files = _environment(request, draft, limits, warnings)
    if request.ignore_unknown_parameters:
        environment = _without_unknown_parameters(environment, draft)
    validate_sinks(settings, environment.event_sinks)
    return draft, environment, files


def _raise_errors(faults: Sequence[Diagnostic], warnings: Sequence[Diagnostic]) -> None:
    """Raise InvalidTemplate if there are errors; with the warnings, those for which a create would be refused
    as errors.
    """
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        refused = [replace(fault, severity="error") for fault in warnings if fault.refused]
        others = [fault for fault in warnings if not fault.refused][:MAX_SHOWN_FAULTS]
        raise InvalidTemplate([*errors, *refused, *others])


def _warnings(faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [fault for fault in faults if fault.severity != "error"]


def kinds_of(
    context: OperationContext,
    environment: Environment,
    files: Mapping[str, str],
    *,
    overlook: bool = False,
    depth: int = 0,
    fetching: bool = True,
    authorizes: bool = True,
) -> TypeResolver:
    """Return the type resolver of a stack with this environment; `fetching` lets it fetch missing files. With
    `authorizes` it raises Forbidden for a type that the caller may not use: readers may see every type.
    """
    settings = context.settings
    of_root = TypeEnvironment.of_stack(
        context.types,
        environment,
        files,
        Limits.of(settings),
        globals=global_environment(settings.environment_dir),
        fetch=PausingFetcher(settings) if fetching else None,
    )
    of_stack = replace(
        of_root,
        allow_unavailable=overlook,
        depth=depth,
        max_depth=settings.max_nested_stack_depth,
        max_resources=settings.max_resources_per_stack,
        authorize=TypePermission(policy_of(settings), context.caller) if authorizes else None,
        offers=services_of_caller(settings, context.caller),
    )
    return TypeResolver(of_stack)


def _read(template: JsonMapping | str, limits: Limits) -> Draft:
    """Parse a request's template. For text that is no template, the message has Heat's prefix
    (docs/internals/rest-api.md §2).
    """
    try:
        return read(template, limits)
    except InvalidTemplate as error:
        if not isinstance(template, str) or error.heat_type != BAD_REQUEST:
            raise
        diagnostics = [
            replace(diagnostic, message=f"Template not in valid format: {diagnostic.message}")
            for diagnostic in error.diagnostics
        ]
        raise InvalidTemplate(diagnostics) from None


def _environment(
    request: StackRequest, draft: Draft, limits: Limits, warnings: list[Diagnostic]
) -> tuple[Environment, Mapping[str, str]]:
    """Return the request's environment, overridden by its own parameters, and the files to store."""
    names, files = request.environment_files, request.files
    if not names:
        sent = Environment.parse(request.environment, limits, of_request=True, warnings=warnings)
        return sent.with_parameters(request.parameters), files
    environment = Environment()
    if request.ignore_unknown_parameters:  # of an update that sends only changes
        environment = Environment.parse(request.environment, limits)
    environment = environment.with_parameters(request.parameters)
    schemas = schemas_in(files, draft.parameters, limits)
    merged = merge_environment_files(
        names,
        files,
        schemas,
        environment,
        limits,
        parameters_win=request.parameters_win,
        warnings=warnings,
    )
    return merged, without_secrets(names, files, schemas, limits)


def _without_unknown_parameters(environment: Environment, draft: Draft) -> Environment:
    parameters = {name: v for name, v in environment.parameters.items() if name in draft.parameters}
    return replace(environment, parameters=parameters)


def _values(
    draft: Draft,
    environment: Environment,
    parameters: Mapping[str, str],
    *,
    strict: bool,
    parent: ParentResourceProxy | None,
    hide: Collection[str],
) -> tuple[ParameterValues, list[Diagnostic], bool]:
    """Return the parameters' values, their faults, and whether there are none."""
    schemas, supplied = draft.parameters, environment.parameters
    try:
        values = ParameterValues.build(
            schemas,
            supplied,
            environment.parameter_defaults,
            parameters,
            missing_ok=not strict,
            parent=parent,
            hide=hide,
        )
    except InvalidTemplate as error:
        faults = list(error.diagnostics)
        invalid = {fault.path for fault in faults}
        return _without_bad_values(invalid, draft, environment, parameters, parent), faults, False
    return values, [], True


def _not_yet_reported(reported: Sequence[Diagnostic], faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the faults that are not reported yet; a warning does not hide an error."""
    error_faults = [fault for fault in reported if fault.severity == "error"]
    errors = not_yet_reported(error_faults, [fault for fault in faults if fault.severity == "error"])
    return [*errors, *not_yet_reported(reported, [fault for fault in faults if fault.severity != "error"])]


def _without_bad_values(
    invalid_paths: Container[str],
    draft: Draft,
    environment: Environment,
    parameters: Mapping[str, str],
    parent: ParentResourceProxy | None,
) -> ParameterValues:
    """Return the values of the parameters without faults at these paths."""
    good = {
        name: declaration
        for name, declaration in draft.parameters.items()
        if f"parameters.{name}" not in invalid_paths
    }
    supplied = {name: value for name, value in environment.parameters.items() if name in good}
    built = ParameterValues.build(
        good, supplied, environment.parameter_defaults, parameters, missing_ok=True, parent=parent
    )
    missing = built.missing | (draft.parameters.keys() - good.keys())
    hidden = built.hidden | {name for name, schema in draft.parameters.items() if schema.hidden}
    return ParameterValues(dict(built), hidden, frozenset(missing))


def _define(draft: Draft, values: ParameterValues | None) -> tuple[Template, list[Diagnostic]]:
    """Return the template, and the faults of its language."""
    try:
        return draft.define(values), []
    except FaultyTemplate as error:
        return error.rest, list(error.diagnostics)


def _as_warning(fault: Diagnostic, codes: Container[str]) -> Diagnostic:
    """Return a fault as a warning if it depends on values."""
    is_error = fault.severity == "error" and fault.code in codes
    return replace(fault, severity="warning", refused=True) if is_error else fault


def _timeout_seconds(request: StackRequest, settings: Settings) -> float:
    return request.timeout_mins * 60.0 if request.timeout_mins else float(settings.stack_action_timeout)


def _check_size(request: StackRequest, limit: int) -> None:
    for text in (request.template, *request.files.values()):
        size = len(text.encode()) if isinstance(text, str) else len(orjson.dumps(text))
        if size > limit:
            raise LimitExceeded(f"Template size ({size} bytes) exceeds maximum allowed size ({limit} bytes).")
