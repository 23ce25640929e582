"""`digest` (docs/internals/hot-language.md §5.2)."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from orchestrator.template.functions.resolved_argument import whole_function

USAGE: Final = 'Function "digest" usage: ["<algorithm>", "<value>"]'
NOT_TEXTS: Final = 'Argument to function "digest" must be a list of strings'


@whole_function("digest", since="2015-04-30")
def digest(args: Any) -> str:
    """``{digest: [sha256, text]}`` gives the hexadecimal digest of the text's Latin-1 bytes."""
    if not isinstance(args, list) or not all(isinstance(item, str) for item in args):
        raise TypeError(NOT_TEXTS)
    if len(args) != 2:
        raise ValueError(USAGE)
    algorithm, text = args
    if algorithm.lower() not in hashlib.algorithms_available:
        known = ", ".join(f"'{name}'" for name in sorted(hashlib.algorithms_available))
        raise ValueError(f"Algorithm must be one of {{{known}}}")
    return hashlib.new(algorithm, text.encode("latin-1"), usedforsecurity=False).hexdigest()
