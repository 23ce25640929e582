"""Types of JSON values, as read from a request, a template or a column of the database.

Their keys and values are checked where they are read; further code states only that a value is an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]  # an object that its reader does not change
