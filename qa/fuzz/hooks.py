"""Hooks of schemathesis: most generated paths lead to existing stacks; otherwise all answers would be 404.

`FUZZ_PLACES` holds these as JSON: a list of path parameters by name.
"""

from __future__ import annotations

import json
import os
from typing import Any
from zlib import crc32

import schemathesis

PLACES: list[dict[str, str]] = json.loads(os.environ.get("FUZZ_PLACES", "[]"))


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Replace three of four generated paths; derived from the generated values, so that a failure can be
    repeated.
    """
    if not path_parameters or not PLACES:
        return path_parameters
    chosen = crc32(repr(sorted(path_parameters.items(), key=repr)).encode("utf-8", "replace"))
    if chosen % 4 == 0:
        return path_parameters
    place = PLACES[chosen // 4 % len(PLACES)]
    return {name: place.get(name, value) for name, value in path_parameters.items()}
