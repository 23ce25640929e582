"""Functions."""

from __future__ import annotations

import re

from orchestrator.template.functions import plain


def slug(text: str, separator: str = "-", /) -> str:
    """``{acme_slug: [Corner Shop]}`` returns ``"corner-shop"``."""
    if not isinstance(text, str) or not isinstance(separator, str):
        raise TypeError('"acme_slug" requires strings')
    return separator.join(re.findall(r"[a-z0-9]+", text.lower()))


def shout(*, text: str, times: int = 1) -> str:
    """``{shout: {text: hello, times: 2}}`` returns ``"HELLO!!"``."""
    if not isinstance(text, str) or not isinstance(times, int):
        raise TypeError('"shout" requires a string and an integer')
    return text.upper() + "!" * times


# Available in HOT from version 2016-10-14 on. A list contains positional arguments.
SLUG = plain(
    "acme_slug",
    slug,
    since="2016-10-14",
    form='"acme_slug" should be: {acme_slug: [<text>, <separator>]}, where the separator is optional',
)

# Available only in our own format. A map contains keyword arguments.
SHOUT = plain("shout", shout, form='"shout" should be: {shout: {text: <text>, times: <number>}}')
