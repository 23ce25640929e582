"""Functions."""

from __future__ import annotations

import re

from orchestrator.template.functions import plain


def slug(text: str, separator: str = "-", /) -> str:
    """``{acme_slug: [Corner Shop]}`` gives ``"corner-shop"``."""
    if not isinstance(text, str) or not isinstance(separator, str):
        raise TypeError('"acme_slug" works with texts only')
    return separator.join(re.findall(r"[a-z0-9]+", text.lower()))


def shout(*, text: str, times: int = 1) -> str:
    """``{shout: {text: hello, times: 2}}`` gives ``"HELLO!!"``."""
    if not isinstance(text, str) or not isinstance(times, int):
        raise TypeError('"shout" takes a text and a whole number')
    return text.upper() + "!" * times


# For HOT from the version of 2016-10-14 on: a list gives the arguments by place.
SLUG = plain(
    "acme_slug",
    slug,
    since="2016-10-14",
    form='"acme_slug" should be: {acme_slug: [<text>, <separator>]}, the separator being optional',
)

# For our own format only: a map gives the arguments by name.
SHOUT = plain("shout", shout, form='"shout" should be: {shout: {text: <text>, times: <number>}}')
