"""`messages` for programs: what cannot be meant is refused before anything is asked."""

import pytest

from tiering_assets.lineage.messages.as_arrow import messages

NAME = "public/default/orders"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"topic": "orders"}, "orders"),
        ({"begin": "yesterday"}, "is not a time"),
        ({"until": "2026-11-20"}, "is before"),
        ({"columns": ["payloads"]}, "no column of a message: payloads"),
        ({"on_error": "skip"}, "expected fail or row"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(changes, why):
    asked = {"topic": NAME, "begin": "2026-11-21", **changes}
    with pytest.raises(ValueError, match=why):
        messages(**asked)


def test_nothing_is_asked_before_the_first_batch():
    reader = messages(NAME, begin="2026-11-21", on_error="row", columns=["key"])
    assert reader.schema.names == ["key", "error"]
