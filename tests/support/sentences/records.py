"""The sentences of docs/schemas/, which describe each kind of record."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from tests.support.sentences.text import Sentence, sentences_of
from tiering_assets.records.codec import RECORD_TYPES

PART = "records"


def of_records() -> Iterator[Sentence]:
    for record in RECORD_TYPES:
        for paragraph in (inspect.getdoc(record) or "").split("\n\n"):
            yield from sentences_of(PART, record.kind, paragraph)
