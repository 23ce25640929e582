"""Lists in responses are read in slices of limited size, also if their items are large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from api.response.serialization import MAX_UNSTREAMED_BYTES, json_list

ITEM = "x" * 300_000


def items(count: int, read: list[int], text: str = ITEM) -> Iterator[dict[str, Any]]:
    for number in range(count):
        read.append(number)
        yield {"number": number, "text": text}


def test_large_items_are_read_while_the_response_is_sent() -> None:
    read: list[int] = []
    response = json_list("items", items(50, read))
    assert len(read) <= MAX_UNSTREAMED_BYTES // len(ITEM) + 1
    chunks = list(response.response)
    assert max(map(len, chunks)) < 2 * MAX_UNSTREAMED_BYTES
    listed = orjson.loads(b"".join(chunks))["items"]
    assert [item["number"] for item in listed] == list(range(50))


@pytest.mark.parametrize("count", [0, 1, 5, 999, 1_000, 1_001, 2_500])
def test_the_tail_sees_the_number_of_items_and_the_last_item(count: int) -> None:
    response = json_list(
        "items", items(count, [], "x"), lambda n, last: {"count": n, "last": last.get("number")}
    )
    body = orjson.loads(response.get_data())
    assert (len(body["items"]), body["count"], body["last"]) == (count, count, count - 1 if count else None)
