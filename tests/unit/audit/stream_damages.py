"""What may be wrong with streams in a bucket: one damage for each rule, and how it is named."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from struct import pack_into
from typing import Any

from tests.support.audited_streams import StreamsBucket as Bucket
from tests.support.sim_scene import TOPIC
from tiering_assets.records import keys

Key = Callable[[Bucket], str]


@dataclass(frozen=True)
class Damage:
    """`what` is in the words of the product's finding; `key` is where it must say that it is."""

    do: Callable[[Bucket], object]
    kind: str
    key: Key
    what: str
    ledger: str | None = "first"
    segment: int | None = 1


def edited(
    key: Key,
    edit: Callable[[Any], object],
    kind: str,
    what: str,
    *,
    at: Key | None = None,
    **of: Any,
) -> Damage:
    """One record says something else, with a digest that fits. The finding is of `at`, if given."""
    return Damage(lambda b: b.change(key(b), edit), kind, at or key, what, **of)


def link(number):
    return lambda b: b.link(number)


def offloaded(number):
    return lambda b: b.offloaded(number)


def given_up(b):
    return b.given_up


def opened(b):
    return b.opened


def attempt(number):
    return lambda b: b.attempt(number)


def failed(b):
    return b.beside(2, "failed")[0]


def data(number):
    return lambda b: b.data(number)


def index(number):
    return lambda b: b.index(number)


def of_range(which, **fields):
    return lambda body: body["ranges"][which].update(fields)


def of_block(**fields):
    return lambda body: body["ledgers"][0]["blocks"][0].update(fields)


def of_ledger(which, **fields):
    return lambda body: body["ledgers"][which].update(fields)


def move_link(b):
    """The stream ends before its last segment."""
    closed, last = b.body(b.link(6)), b.link(5)
    b.put(last, {**closed, "segments": 4, "previous": sha(b, b.link(4))})
    b.put(b.link(6), {**closed, "previous": sha(b, b.link(5))})


def sha(b, key):
    return sha256(b.raw(key)).hexdigest()


def skipping(b, *, to_entry: int):
    """Segment 4 begins 7 entries later, and says that they were skipped."""
    body = b.body(b.link(4))
    one = body["ranges"][0]
    at = one["first_entry_id"]
    one.update(first_entry_id=at + 7, last_entry_id=at + 8, bound_entry_id=at + 8)
    skipped = {"from_ledger_id": b.second, "from_entry_id": at, "reason": "a test"}
    skipped |= {"to_ledger_id": b.second, "to_entry_id": to_entry + at}
    b.put(b.link(4), body | {"skipped": skipped})


def flip(at):
    def do(body):
        body[at] ^= 1

    return do


def certified_attempt(b):
    uid = b.body(b.offloaded(4))["uid"]
    return f"{keys.of_segment(TOPIC, b.old, 4)}.attempts/{uid}.json"


DIGEST = "0" * 64
OTHER = "00000000-0000-4000-8000-000000000000"
DAMAGES = {
    # each record by itself
    "a byte of a record": Damage(
        lambda b: b.rot(b.full(b.link(2)), flip(40)), "record_damaged", link(2), "", None, 2
    ),
    "a record cut off": Damage(
        lambda b: b.world.objects.rot(b.full(b.link(2)), b"{}"),
        "record_damaged",
        link(2),
        "bytes",
        None,
        2,
    ),
    "another schema": edited(
        link(2),
        lambda r: r.update(schema="tierkeeper/segment-attempt/1"),
        "schema_unknown",
        "schema",
        ledger=None,
        segment=2,
    ),
    "a field of another type": edited(
        offloaded(2),
        lambda r: r.update(entries="1"),
        "record_damaged",
        "fields",
        ledger=None,
        segment=2,
    ),
    **{
        f"{name} says what it cannot": edited(
            key, edit, "record_damaged", "fields", ledger=None, segment=segment
        )
        for name, key, edit, segment in (
            ("begins", opened, lambda r: r.update(begins="x"), None),
            ("trigger", link(2), lambda r: r.update(trigger="x"), 2),
            ("stage", failed, lambda r: r.update(stage="x"), 2),
            ("block_digest", offloaded(2), lambda r: r.update(block_digest="x"), 2),
            ("bound_by", link(2), of_range(0, bound_by="x"), 2),
            ("number", link(2), lambda r: r.update(number=0), 2),
            ("uid", offloaded(2), lambda r: r.update(uid="x"), 2),
        )
    },
    "another topic": edited(
        link(2),
        lambda r: r.update(ml_name="t/ns/persistent/x"),
        "record_misplaced",
        "names",
        ledger=None,
        segment=2,
    ),
    "another stream": edited(
        given_up,
        lambda r: r.update(stream=r["stream"][:-4] + "0001"),
        "record_misplaced",
        "names",
        ledger=None,
        segment=3,
    ),
    "another creation id": edited(
        opened,
        lambda r: r.update(ml_czxid=1),
        "record_misplaced",
        "names",
        ledger=None,
        segment=None,
    ),
    "another number": edited(
        offloaded(2),
        lambda r: r.update(number=3),
        "record_misplaced",
        "names",
        ledger=None,
        segment=2,
    ),
    "an end of fewer segments": edited(
        link(6),
        lambda r: r.update(segments=4),
        "record_misplaced",
        "names",
        ledger=None,
        segment=6,
    ),
    "another attempt": edited(
        attempt(1), lambda r: r.update(uid=OTHER), "record_misplaced", "names", ledger=None
    ),
    "a key of no record": Damage(
        lambda b: b.world.objects.put(b.full(keys.of_stream(TOPIC, b.old)) + "x", b"{}"),
        "record_misplaced",
        lambda b: keys.of_stream(TOPIC, b.old) + "x",
        "key",
        None,
        0,
    ),
    "a time in the future": edited(
        given_up,
        lambda r: r.update(given_up_at="2999-01-01T00:00:00+00:00"),
        "record_in_future",
        "time",
        ledger=None,
        segment=3,
    ),
    # the chain
    "the opening is lost": Damage(
        lambda b: b.lose(b.opened), "record_missing", opened, "opening", None, None
    ),
    "an assignment is lost": Damage(
        lambda b: b.lose(b.link(2)), "record_missing", link(2), "assignment", "second", 2
    ),
    "all of a segment is lost": Damage(
        lambda b: b.lose_segment(2),
        "record_missing",
        link(2),
        "segments 2 to 2",
        None,
        2,
    ),
    "all of the first segment is lost": Damage(
        lambda b: b.lose_segment(1),
        "record_missing",
        link(1),
        "segments 1 to 1",
        None,
        1,
    ),
    "a certificate is lost": Damage(
        lambda b: b.lose(b.offloaded(2)), "record_missing", offloaded(2), "follows", "second", 2
    ),
    "nobody gave it up": Damage(
        lambda b: b.lose(b.given_up), "record_missing", offloaded(3), "follows", "second", 3
    ),
    "a segment behind the end": Damage(
        move_link, "chain_broken", link(6), "behind the end", None, 6
    ),
    "records where the stream ends": Damage(
        move_link, "chain_broken", link(5), "where its stream ends", "third", 5
    ),
    "a link to another opening": edited(
        link(1), lambda r: r.update(previous=DIGEST), "chain_broken", "the stream's opening"
    ),
    "a link to another segment": edited(
        link(4),
        lambda r: r.update(previous=DIGEST),
        "chain_broken",
        "segment 3",
        ledger="second",
        segment=4,
    ),
    "an end behind another segment": edited(
        link(6),
        lambda r: r.update(previous=DIGEST),
        "chain_broken",
        "segment 5",
        ledger=None,
        segment=6,
    ),
    "an attempt at another assignment": edited(
        attempt(1), lambda r: r.update(previous=DIGEST), "chain_broken", "the assignment"
    ),
    "an attempt at other ledgers": edited(
        attempt(1), lambda r: r.update(ledger_ids=[7]), "facts_differ", "ledger_ids"
    ),
    "a failure of another attempt": edited(
        failed,
        lambda r: r.update(previous=DIGEST),
        "chain_broken",
        "the attempt",
        ledger="second",
        segment=2,
    ),
    "a failure with other ledgers": edited(
        failed,
        lambda r: r.update(ledger_ids=[7]),
        "facts_differ",
        "ledger_ids",
        ledger="second",
        segment=2,
    ),
    "a failed attempt is lost": Damage(
        lambda b: b.lose(failed(b).replace(".failed/", ".attempts/")),
        "record_missing",
        lambda b: failed(b).replace(".failed/", ".attempts/"),
        "attempt",
        "second",
        2,
    ),
    "a certificate of another attempt": edited(
        offloaded(1), lambda r: r.update(previous=DIGEST), "chain_broken", "the attempt"
    ),
    "the attempt of a certificate is lost": Damage(
        lambda b: b.lose(b.attempt(4)),
        "record_missing",
        certified_attempt,
        "attempt",
        "second",
        4,
    ),
    "a certificate of another assignment": edited(
        offloaded(1), lambda r: r.update(assigned_sha256=DIGEST), "chain_broken", "assigned_sha256"
    ),
    "given up is another assignment": edited(
        given_up,
        lambda r: r.update(previous=DIGEST),
        "chain_broken",
        "the assignment",
        ledger="second",
        segment=3,
    ),
    "given up are other ledgers": edited(
        given_up,
        lambda r: r.update(ledger_ids=[]),
        "facts_differ",
        "ledger_ids",
        ledger="second",
        segment=3,
    ),
    **{
        f"an attempt planned another {what}": edited(
            attempt(1), edit, "facts_differ", what, at=offloaded(1)
        )
        for what, edit in (
            ("bucket", lambda r: r.update(bucket="x")),
            ("data key", lambda r: r.update(data_key="x")),
            ("index key", lambda r: r.update(index_key="x")),
            ("size", lambda r: r.update(object_bytes=1)),
            ("blocks", lambda r: r.update(blocks=9)),
        )
    },
    # tiling
    "a segment without ranges": edited(
        link(3), lambda r: r.update(ranges=[]), "facts_differ", "ranges", ledger=None, segment=3
    ),
    "a gap": edited(
        link(2),
        of_range(0, first_entry_id=3, last_entry_id=3, bound_entry_id=3),
        "facts_differ",
        "its first entry",
        ledger="second",
        segment=2,
    ),
    "an overlap": edited(
        link(2),
        of_range(0, first_entry_id=1),
        "facts_differ",
        "its first entry",
        ledger="second",
        segment=2,
    ),
    "other bytes before": edited(
        link(2),
        of_range(0, bytes_before=3),
        "facts_differ",
        "its first entry",
        ledger="second",
        segment=2,
    ),
    "a ledger that begins later": edited(
        link(5),
        of_range(0, first_entry_id=1, last_entry_id=1, bound_entry_id=1),
        "facts_differ",
        "its first entry",
        ledger="third",
        segment=5,
    ),
    "a ledger that begins with bytes": edited(
        link(5),
        of_range(0, bytes_before=1),
        "facts_differ",
        "before entry 0",
        ledger="third",
        segment=5,
    ),
    "a ledger before the one before": edited(
        link(5),
        of_range(0, ledger_id=0),
        "facts_differ",
        "its first entry",
        ledger="zero",
        segment=5,
    ),
    "another beginning than the opening's": edited(
        opened,
        lambda r: r.update(first_entry_id=1),
        "facts_differ",
        "its first entry",
        at=link(1),
    ),
    "a later ledger of a segment begins later": edited(
        link(1),
        of_range(1, first_entry_id=1),
        "facts_differ",
        "first entry of a ledger",
        ledger="second",
    ),
    "ledgers of a segment that do not ascend": edited(
        link(1), of_range(1, ledger_id=0), "facts_differ", "ledger ids", ledger="zero"
    ),
    "entries that end before they begin": edited(
        link(1), of_range(0, last_entry_id=-1), "facts_differ", "first, last"
    ),
    "entries behind what was proven": edited(
        link(1), of_range(0, bound_entry_id=0), "facts_differ", "first, last"
    ),
    "fewer bytes up to the end than before": edited(
        link(2),
        of_range(0, bytes_upto=1),
        "facts_differ",
        "payload bytes before and up",
        ledger="second",
        segment=2,
    ),
    "skipped to another place": Damage(
        lambda b: skipping(b, to_entry=6), "facts_differ", link(4), "skipped", "second", 4
    ),
    "skipped where nothing is": edited(
        link(5),
        lambda r: r.update(
            skipped={
                "from_ledger_id": 0,
                "from_entry_id": 0,
                "to_ledger_id": 0,
                "to_entry_id": 0,
                "reason": "a test",
            }
        ),
        "facts_differ",
        "skipped",
        ledger="third",
        segment=5,
    ),
    # certificates
    "a certificate of other ranges": edited(
        offloaded(1), of_ledger(0, last_entry_id=2), "facts_differ", "ranges, as assigned"
    ),
    "a certificate of another creation id": edited(
        offloaded(1), lambda r: r.update(ml_czxid=1), "record_misplaced", "names", ledger=None
    ),
    **{
        f"a certificate with {name}": edited(
            offloaded(1), edit, "certificate_inconsistent", "certificate"
        )
        for name, edit in (
            ("other entries", lambda r: r.update(entries=9)),
            ("other payload bytes", lambda r: r.update(payload_bytes=9)),
            ("another data key", lambda r: r["data"].update(key=OTHER)),
            ("another index key", lambda r: r["index"].update(key=OTHER)),
            ("another size", lambda r: r["data"].update(size=9)),
            ("another data digest", lambda r: r["data"].update(sha256=DIGEST)),
            ("no digest", lambda r: r["index"].update(sha256="x")),
            ("a failed suite", lambda r: r["suites"][0].update(success=False)),
            ("no suite", lambda r: r.update(suites=[])),
            ("another part", of_block(part_number=2)),
            ("another offset", of_block(offset=1)),
            ("a block that is too small", of_block(block_length=9)),
            ("another first entry of a block", of_block(first_entry_id=1)),
            ("another last entry of a block", of_block(last_entry_id=7)),
            ("another payload of a block", of_block(payload_bytes=7)),
            ("a negative payload", of_block(payload_bytes=-1)),
            ("bytes of a ledger that its blocks have not", of_ledger(1, bytes_upto=99)),
            ("a ledger that ends later", of_ledger(1, last_entry_id=99)),
        )
    },
    "a certificate without ledgers": edited(
        offloaded(1), lambda r: r.update(ledgers=[]), "certificate_inconsistent", "certificate"
    ),
    "a ledger that none has": edited(
        offloaded(1), of_ledger(0, ledger_id=-1), "certificate_inconsistent", "certificate"
    ),
    "an entry that none has": edited(
        offloaded(1), of_block(first_entry_id=-1), "certificate_inconsistent", "certificate"
    ),
    # objects
    "a data object that is away": Damage(
        lambda b: b.world.objects.delete(b.data(1)), "object_missing", data(1), "object"
    ),
    "an index object that is away": Damage(
        lambda b: b.world.objects.delete(b.index(1)), "object_missing", index(1), "object"
    ),
    "an object that was written again": Damage(
        lambda b: b.world.objects.overwrite(b.data(1), b"x"), "object_differs", data(1), "size"
    ),
    "an index of other bytes": Damage(
        lambda b: b.rot(b.index(4), flip(-1)), "index_differs", index(4), "SHA-256", "second", 4
    ),
    "an index that is cut off": Damage(
        lambda b: b.world.objects.rot(b.index(4), b"x"),
        "index_differs",
        index(4),
        "index",
        "second",
        4,
    ),
    "an index of another length": Damage(
        lambda b: b.rot(b.index(4), lambda body: pack_into(">q", body, 8, 2**30)),
        "index_differs",
        index(4),
        "data object length",
        "second",
        4,
    ),
    "an index with another place of a block": Damage(
        lambda b: b.rot(b.index(4), lambda body: pack_into(">q", body, len(body) - 8, 4)),
        "index_differs",
        index(4),
        "first entry, part number, offset",
        "second",
        4,
    ),
    "other LedgerInfo": edited(
        offloaded(4),
        of_ledger(0, info_hex="00"),
        "index_differs",
        "LedgerInfo",
        ledger="second",
        segment=4,
        at=index(4),
    ),
    "a header of another ledger": Damage(
        lambda b: b.rot(b.data(4), flip(35)), "block_differs", data(4), "block", "second", 4
    ),
    "a header with another magic": Damage(
        lambda b: b.rot(b.data(4), flip(0)), "block_differs", data(4), "block", "second", 4
    ),
    "a payload byte": Damage(
        lambda b: b.rot(b.data(1), flip(150)), "block_differs", data(1), "SHA-256"
    ),
    "a byte of padding": Damage(
        lambda b: b.rot(b.data(1), flip(-1)), "block_differs", data(1), "block", "second"
    ),
    "a digest of other bytes": edited(
        offloaded(1),
        lambda r: of_block(entries_sha256=DIGEST)(r),
        "block_differs",
        "entries digest",
        at=data(1),
    ),
}
