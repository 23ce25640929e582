"""The places of secrets in evaluated values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.json_types import JsonMapping
from orchestrator.template.definition import StackDefinition
from orchestrator.template.formats import format_named
from orchestrator.template.functions import FunctionError
from orchestrator.template.functions.member import NAME, member_secrets
from orchestrator.template.secret_values import NO_SECRETS, Place, SecretValues, bounded, values_at


def secret_places(view: StackDefinition, written: object, place: Place = ()) -> Iterator[Place]:
    """Yield the places of secrets in the value of `written`, which is at `place`; the result of a function is
    secret as a whole.
    """
    if not isinstance(written, dict | list) or not _uses_secret(view, written):
        return
    if isinstance(written, dict) and not is_call(view, written):
        for key, item in written.items():
            yield from secret_places(view, item, (*place, key))
    elif isinstance(written, list):
        for index, item in enumerate(written):
            yield from secret_places(view, item, (*place, index))
    else:
        yield place


def secrets_of(view: StackDefinition, written: object, value: object) -> SecretValues | None:
    """Return the secrets in `value`, which is the value of `written`; None: any of it may be secret."""
    before = view.used_secret
    try:
        if isinstance(written, dict) and NAME in written and is_call(view, written):
            return member_secrets(view, written[NAME])
        places = list(secret_places(view, written))
    finally:
        view.used_secret = before
    if not places:
        return NO_SECRETS
    return bounded(SecretValues.within(*values_at(value, places)) | view.secret_sources())


def places_of(value: object, secrets: SecretValues, place: Place = ()) -> Iterator[Place]:
    """Yield the places of known secrets in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places_of(item, secrets, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places_of(item, secrets, (*place, index))
    elif secrets.found_in(value):
        yield place


def is_call(view: StackDefinition, written: JsonMapping) -> bool:
    """Whether a map is the call of a function."""
    return len(written) == 1 and next(iter(written)) in format_named(view.version).callable


def names_in(places: Sequence[Place]) -> set[str]:
    """Return the outermost names of places."""
    return {str(place[0]) for place in places}


def _uses_secret(view: StackDefinition, written: object) -> bool:
    """Evaluate a value again; the bytes of its results are not counted twice."""
    view.used_secret, made = False, view.made
    try:
        view.resolved(written)
    except FunctionError:
        view.used_secret = True
    finally:
        view.made = made
    return view.used_secret
