"""Entries that lie, are damaged or are of a rare sort; and what must become of each, by hand.

Owns: what is expected is written down here and comes from no decoder of ours. A sound message
stands before and behind each, so that one that is lost is seen.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack

from tests.support.cold_entries import CODECS, TIME, single
from tests.support.pulsar_entries import (
    CHUNK_ID,
    CHUNKS,
    COMPRESSION,
    ENCRYPTION_KEYS,
    MARKER_TYPE,
    MESSAGES_IN_BATCH,
    PRODUCER_NAME,
    PROPERTIES,
    PUBLISH_TIME,
    SEQUENCE_ID,
    UNCOMPRESSED_SIZE,
    UUID,
    Field,
    encoded,
    entry,
    message,
)

Place = tuple[int, int, int]
"""Which ledger of a topic, counted from 0; entry; index in its batch, -1 without one."""
DAY_MS = 86_400_000
KEY, TXN_LEAST, TXN_MOST = 6, 22, 23
BEFORE, BEHIND = b"before", b"behind"
_WORDS = b"the same words again and again, " * 20
_BATCH = single(b"one") + single(b"two") + single(b"three")


@dataclass(frozen=True, kw_only=True)
class TopicFault:
    """Ledgers of a topic, which messages are in them, and which entries cannot be read.

    `rows` are payloads by place. `bad` are words of the error by (ledger, entry): a reader that
    fails names the first, one that goes on has a row for each, and for those that are `told` to it
    alone. `options` are asked for. What is `of_topic` takes more than entries one by one.
    """

    name: str
    ledgers: Sequence[Sequence[bytes]]
    rows: Mapping[Place, bytes]
    bad: Mapping[tuple[int, int], str] = field(default_factory=dict)
    told: Mapping[tuple[int, int], str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    error: str = "FormatError"
    of_topic: bool = False
    block_bytes: int = 400

    @property
    def topic(self) -> str:
        return f"public/default/fault-{self.name}"

    @property
    def ml_name(self) -> str:
        return f"public/default/persistent/fault-{self.name}"


def _of_one(
    name: str,
    made: bytes,
    *,
    rows: Sequence[tuple[int, bytes]] = (),
    bad: str = "",
    **options: str,
) -> TopicFault:
    """One entry, with a message before and behind it. `rows` are (index, payload) of its own."""
    return TopicFault(
        name=name,
        ledgers=[[message(TIME, payload=BEFORE), made, message(TIME, payload=BEHIND)]],
        rows={
            (0, 0, -1): BEFORE,
            **{(0, 1, index): payload for index, payload in rows},
            (0, 2, -1): BEHIND,
        },
        bad={(0, 1): bad} if bad else {},
        options=options,
    )


def _claims(name: str, bad: str, *fields: Field, payload: bytes = _BATCH) -> TopicFault:
    return _of_one(name, message(TIME, *fields, payload=payload), bad=bad)


def _sizes() -> list[TopicFault]:
    lz4, squeeze = CODECS["LZ4"]
    packed = squeeze(_BATCH)
    of_batch: list[Field] = [(COMPRESSION, lz4), (UNCOMPRESSED_SIZE, len(_BATCH))]
    head = encoded([(PRODUCER_NAME, b"p"), (SEQUENCE_ID, 1), (PUBLISH_TIME, TIME)])
    too_long = pack(">I", 2**31) + head
    return [
        _claims("2-to-31-messages", "goes on here", (MESSAGES_IN_BATCH, 2**31 - 1)),
        _claims("2-to-31-messages-signed", "a batch of -2147483648", (MESSAGES_IN_BATCH, 2**31)),
        _claims("minus-one-message", "a batch of -1 messages", (MESSAGES_IN_BATCH, -1)),
        _claims("2-to-31-messages-packed", "goes on here", *of_batch,
                (MESSAGES_IN_BATCH, 2**31 - 1), payload=packed),
        _claims("more-messages", "message 3 of a batch of 4|goes on here",
                (MESSAGES_IN_BATCH, 4)),
        _claims("fewer-messages", "are behind its last message", (MESSAGES_IN_BATCH, 2)),
        _claims("no-messages-but-bytes", "are behind its last message", (MESSAGES_IN_BATCH, 0)),
        _claims("2-to-31-bytes", "claims 2147483648 bytes", (COMPRESSION, lz4),
                (UNCOMPRESSED_SIZE, 2**31), payload=packed),
        _claims("2-to-63-bytes", "claims 9223372036854775808 bytes", (COMPRESSION, lz4),
                (UNCOMPRESSED_SIZE, 2**63), payload=packed),
        _claims("one-byte-more", "does not decompress|expected", (COMPRESSION, lz4),
                (UNCOMPRESSED_SIZE, len(_BATCH) + 1), payload=packed),
        _claims("single-of-2-to-31-bytes", "payload of 2147483647 bytes", (MESSAGES_IN_BATCH, 1),
                payload=pack(">I", 6) + encoded([(3, 2**31 - 1)]) + b"x"),
        _claims("single-of-minus-one", "payload of -1 bytes", (MESSAGES_IN_BATCH, 1),
                payload=pack(">I", 11) + encoded([(3, -1)]) + b"x"),
        _of_one("metadata-of-2-to-31-bytes", too_long, bad="message metadata: "),
        _of_one("broker-head-of-2-to-31-bytes", b"\x0e\x02" + too_long, bad="broker entry metadata"),
        _of_one("property-of-2-to-31-bytes",
                message(TIME, (PROPERTIES, b"\x0a\xff\xff\xff\xff\x07k")), bad="property"),
    ]  # fmt: skip


def _rare() -> list[TopicFault]:
    many: list[Field] = [(PROPERTIES, encoded([(1, b"k%d" % n), (2, b"v")])) for n in range(20_000)]
    strange: list[Field] = [(31, 7), (200, b"later"), (2**29 - 1, b"much later")]
    of_three = (MESSAGES_IN_BATCH, 3)
    found = [
        _of_one("20000-properties", message(TIME, *many, payload=b"many"), rows=[(-1, b"many")]),
        _of_one("unknown-fields", message(TIME, *strange, payload=b"new"), rows=[(-1, b"new")]),
        _of_one("invalid-utf8", message(TIME, (KEY, b"\xff\xfe"), payload=b"k"),
                rows=[(-1, b"k")]),
        _of_one("empty-batch", message(TIME, (MESSAGES_IN_BATCH, 0), payload=b"")),
        _of_one("batch-of-one", message(TIME, (MESSAGES_IN_BATCH, 1), payload=single(b"one")),
                rows=[(0, b"one")]),
        _of_one("batch-cut", message(TIME, of_three, payload=_BATCH[:-3]),
                bad="message 2 of a batch of 3"),
        _of_one("marker", message(TIME, (MARKER_TYPE, 21), payload=b"marker")),
        _of_one("marker-asked-for", message(TIME, (MARKER_TYPE, 21), payload=b"marker"),
                rows=[(-1, b"marker")], markers="true"),
        _of_one("encrypted", message(TIME, (ENCRYPTION_KEYS, b"\x0a\x01k"), of_three,
                                     payload=b"closed"), rows=[(-1, b"closed")]),
        _of_one("in-a-transaction", message(TIME, (TXN_MOST, 0), (TXN_LEAST, 7), payload=b"of 7"),
                rows=[(-1, b"of 7")]),
        _of_one("clock-years-ahead", message(2**63 - 1, payload=b"last"), rows=[(-1, b"last")]),
        _of_one("clock-at-zero", message(0, payload=b"first"), rows=[(-1, b"first")]),
    ]  # fmt: skip
    for codec, (code, squeeze) in CODECS.items():
        size = (UNCOMPRESSED_SIZE, len(_WORDS))
        how: list[Field] = [(COMPRESSION, code)]
        whole = message(TIME, *how, size, payload=squeeze(_WORDS))
        found.append(_of_one(f"codec-{codec}", whole, rows=[(-1, _WORDS)]))
        of_batch: list[Field] = [*how, (UNCOMPRESSED_SIZE, len(_BATCH)), of_three]
        batch = message(TIME, *of_batch, payload=squeeze(_BATCH))
        three = [(0, b"one"), (1, b"two"), (2, b"three")]
        found.append(_of_one(f"codec-{codec}-batch", batch, rows=three))
        if code:
            cut = message(TIME, *how, size, payload=squeeze(_WORDS)[:-9])
            found.append(_of_one(f"codec-{codec}-cut", cut, bad="does not decompress|expected"))
    unknown = message(TIME, (COMPRESSION, 9), (UNCOMPRESSED_SIZE, 3), payload=b"abc")
    found.append(_of_one("codec-unknown", unknown, bad="codec is unknown"))
    return found


def _not_pulsars() -> list[TopicFault]:
    made = {
        "text": b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n",
        "random": random.Random(7).randbytes(300),
        "nothing": b"",
        "zeros": bytes(64),
        "a-cursor": b"\x08\x2a\x10\x07\x1a\x04\x08\x2a\x10\x02",
        "no-producer": entry(encoded([(SEQUENCE_ID, 1), (PUBLISH_TIME, TIME)])),
        "half-a-head": message(TIME)[:9],
    }
    return [_of_one(f"not-pulsars-{name}", one, bad=".") for name, one in made.items()]


def _checksums() -> list[TopicFault]:
    """The checksums of entries that tests make fit none."""
    return [
        TopicFault(
            name="checksum",
            ledgers=[[message(TIME, payload=BEFORE, checksum=False), message(TIME, payload=b"x")]],
            rows={(0, 0, -1): BEFORE},
            bad={(0, 1): "its CRC32C does not fit"},
            options={"verify": "true"},
        )
    ]


def piece(which: int, of: int, content: bytes, *more: Field, at: int = TIME) -> bytes:
    fields: list[Field] = [
        (UUID, b"p-1"),
        (CHUNKS, of),
        (CHUNK_ID, which),
        (UNCOMPRESSED_SIZE, 0),
        *more,
    ]
    return message(at, *fields, payload=content)


def _pieces() -> list[TopicFault]:
    long = [b"%d" % n * 300 for n in range(3)]  # each a block of its own
    first, second, third = (piece(n, 3, one) for n, one in enumerate(long))
    last = message(TIME, payload=BEHIND)
    damaged = piece(0, 3, long[0])[:20]
    return [
        TopicFault(
            name="pieces-in-a-block",
            ledgers=[[piece(0, 2, b"a"), piece(1, 2, b"b"), last]],
            rows={(0, 1, -1): b"ab", (0, 2, -1): BEHIND},
            of_topic=True,
        ),
        TopicFault(
            name="pieces-in-three-blocks",
            ledgers=[[first, second, third, last]],
            rows={(0, 2, -1): b"".join(long), (0, 3, -1): BEHIND},
            of_topic=True,
        ),
        TopicFault(
            name="pieces-in-three-ledgers",
            ledgers=[[last, first], [second], [third, last]],
            rows={(0, 0, -1): BEHIND, (2, 0, -1): b"".join(long), (2, 1, -1): BEHIND},
            of_topic=True,
        ),
        TopicFault(
            name="first-piece-trimmed",
            ledgers=[[second, third, last]],
            rows={(0, 2, -1): BEHIND},
            bad={(0, 1): "cannot be joined"},
            of_topic=True,
        ),
        TopicFault(
            name="first-piece-damaged",
            ledgers=[[damaged, last], [second, third, last]],
            rows={(0, 1, -1): BEHIND, (1, 2, -1): BEHIND},
            bad={(0, 0): ".", (1, 1): "cannot be joined"},
            of_topic=True,
        ),
        TopicFault(
            name="a-piece-twice",
            ledgers=[[piece(0, 2, b"a"), piece(0, 2, b"a"), piece(1, 2, b"b"), piece(1, 2, b"b")]],
            rows={(0, 2, -1): b"ab"},
            of_topic=True,
        ),
        TopicFault(
            name="a-piece-never-sent",
            ledgers=[[piece(0, 3, b"a"), piece(2, 3, b"c"), last]],
            rows={(0, 2, -1): BEHIND},
            told={(0, 1): "cannot be joined"},  # consumers do not get it either
            of_topic=True,
        ),
    ]


def _transactions() -> list[TopicFault]:
    def of(number: int, payload: bytes) -> bytes:
        return message(TIME, (TXN_MOST, 0), (TXN_LEAST, number), payload=payload)

    def end(number: int, kind: int) -> bytes:
        return message(TIME, (MARKER_TYPE, kind), (TXN_MOST, 0), (TXN_LEAST, number))

    committed = {"transactions": "committed"}
    return [
        TopicFault(
            name="transactions-ended-later",
            ledgers=[[of(1, b"c"), of(2, b"a")], [end(1, 21), end(2, 22), of(3, b"d"), end(3, 21)]],
            rows={(0, 0, -1): b"c", (1, 2, -1): b"d"},
            options=committed,
            of_topic=True,
        ),
        TopicFault(
            name="transaction-undecided",
            ledgers=[[message(TIME, payload=BEFORE), of(1, b"u")]],
            rows={(0, 0, -1): BEFORE},
            bad={(0, 1): "is neither committed nor aborted"},
            options=committed,
            error="CatalogueError",
            of_topic=True,
        ),
    ]


def _clocks() -> list[TopicFault]:
    """A time is asked for: what producers say counts, in any order and years apart."""
    times = [0, 5 * DAY_MS, -3 * DAY_MS, 2 * DAY_MS, -4000 * DAY_MS, 1, 9000 * DAY_MS, 2]
    day = {"from": "2026-11-21", "until": "2026-11-21T23:59"}
    ledgers = [
        [message(TIME + n + shift, payload=b"%d %d" % (n, at)) for at, shift in enumerate(times)]
        for n in range(2)
    ]
    inside = [at for at, shift in enumerate(times) if shift in (0, 1, 2)]
    return [
        TopicFault(
            name="times-out-of-order",
            ledgers=ledgers,
            rows={(n, at, -1): b"%d %d" % (n, at) for n in range(2) for at in inside},
            options=day,
            of_topic=True,
        )
    ]


TOPIC_FAULTS = (
    *_sizes(),
    *_rare(),
    *_not_pulsars(),
    *_checksums(),
    *_pieces(),
    *_transactions(),
    *_clocks(),
)
