"""Types of JSON values: their keys and values are checked where they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]  # an object that its reader does not change
