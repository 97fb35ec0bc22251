"""A block is the same, and has the same digests, whichever loop made it; and damage is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from struct import pack

import pytest

from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format.digests import EntriesDigest, FramesDigest, digest_of
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.runs import find_in_batch, verify_batch
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.native.loader import this_loop
from tiering_assets.tasks.block_body import digest_entries, encode_block

CODEC = EntryCodec(ledger_id=7, digest_type=DigestType.CRC32C, password=b"")
SOURCE = random.Random(5)
PAYLOADS = [SOURCE.randbytes(SOURCE.choice((0, 1, 50, 767, 5000))) for _ in range(40)]
[PLAN] = plan_layout_from_sizes([len(p) for p in PAYLOADS], block_bytes_max=1 << 20)


@pytest.fixture(scope="module")
def core():
    loop = this_loop()
    assert loop.core is not None, loop.said
    return loop.core


def answer(first, payloads):
    """A bookie's answer to a batch read."""
    body = bytearray()
    for i, payload in enumerate(payloads, first):
        stored = CODEC.encode(
            entry_id=i, last_add_confirmed=-1, cumulative_length=0, payload=payload
        )
        body += pack(">i", len(stored)) + stored
    return memoryview(body)


def run_of(core, first, payloads):
    records = answer(first, payloads)
    found = find_in_batch(core, records, count_max=1000)
    run, failure = verify_batch(core, CODEC, records, found, first_entry_id=first)
    assert failure is None
    assert run is not None
    return run


def runs(core, cuts=(0, 13, 14, 40)):
    return [run_of(core, a, PAYLOADS[a:b]) for a, b in pairwise(cuts)]


def expected():
    """Written down without the encoder."""
    frames = b"".join(pack(">iq", len(p), i) + p for i, p in enumerate(PAYLOADS))
    head = pack(">Iqqq100x", 0xFBDBABCB, 128, PLAN.block_length, 0)
    padding = (b"\xfe\xdc\xde\xad" * (PLAN.padding_bytes // 4 + 1))[: PLAN.padding_bytes]
    return head + frames, head + frames + padding


def built(some_runs, core):
    body = encode_block(PLAN, some_runs, BlockEncoder(PLAN.block_length), core)
    return bytes(body.body), body.sha256, body.entries_sha256


def test_both_loops_make_the_block_that_the_format_says(core):
    framed, whole = expected()
    wanted = (whole, sha256(whole).digest(), sha256(framed).hexdigest())
    assert built(runs(core), core) == wanted
    assert built(runs(None), None) == wanted
    assert built(runs(None), core) == wanted  # entries that were built one by one
    assert built(runs(core), None) == wanted
    mixed = [*runs(core, (0, 13)), *runs(None, (13, 14)), *runs(core, (14, 40))]
    assert built(mixed, core) == wanted


ROOMY = replace(PLAN, block_length=PLAN.block_length + 77)


def test_padding_is_digested_with_the_block(core):
    plan = ROOMY
    for loop in (core, None):
        body = encode_block(plan, runs(loop), BlockEncoder(plan.block_length), loop)
        assert body.sha256 == sha256(body.body).digest()
        end = plan.block_length - 77
        assert body.entries_sha256 == sha256(body.body[:end]).hexdigest()


@pytest.mark.parametrize("kind", ["frames", "entries"])
def test_both_loops_digest_a_source_alike(core, kind):
    framed, _whole = expected()
    one_by_one = b"".join(pack(">qi", i, len(p)) + p for i, p in enumerate(PAYLOADS))
    wanted = sha256(framed if kind == "frames" else one_by_one).hexdigest()
    for loop in (core, None):
        digest = digest_entries(PLAN, runs(loop), digest_of(kind, PLAN.header()), loop)
        assert type(digest) is (FramesDigest if kind == "frames" else EntriesDigest)
        assert (digest.hexdigest(), digest.entries) == (wanted, 40)
        assert digest.payload_bytes == PLAN.payload_bytes


ACTS = {
    "copy": lambda run, core: encode_block(PLAN, [run], BlockEncoder(PLAN.block_length), core),
    "digest": lambda run, core: digest_entries(
        PLAN, [run], digest_of("frames", PLAN.header()), core
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_records_that_changed_after_they_were_verified_are_refused(core, act):
    run = run_of(core, 0, PAYLOADS)
    run.records[len(run.records) - 1] ^= 1  # as of a buffer that somebody writes to
    with pytest.raises(IntegrityError, match="CRC32C digest of ledger 7 entry 39: stored"):
        ACTS[act](run, core)


@pytest.mark.parametrize(
    ("first", "payloads"),
    [(1, PAYLOADS[1:]), (0, [*PAYLOADS, b""]), (0, [*PAYLOADS[:-1], b"x" * 9000])],
)
def test_other_entries_than_planned_are_refused_in_pythons_words(core, first, payloads):
    said = []
    for loop in (core, None):
        encoder = BlockEncoder(PLAN.block_length)
        with pytest.raises(IntegrityError) as refused:
            encode_block(PLAN, [run_of(loop, first, payloads)], encoder, loop)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert said[0].startswith("part 1: ")


@pytest.mark.parametrize(("first", "count"), [(1, 39), (0, 41), (0, 40)])
def test_nothing_is_framed_that_is_not_next_in_the_plan(core, first, count):
    """Nor what does not fit: the block is as it was."""
    payloads = [b"", *PAYLOADS][:count] if count > 40 else PAYLOADS[first:]
    if (first, count) == (0, 40):
        payloads = [*PAYLOADS[:-1], b"x" * 9000]
    encoder = BlockEncoder(ROOMY.block_length)
    encoder.begin(ROOMY)
    records = answer(first, payloads)
    assert encoder.add_stored(core, records, first_entry_id=first, entries=count) is None
    encoder.add_many(0, PAYLOADS)
    assert bytes(encoder.finish()).startswith(expected()[0][128:], 128)


def test_frames_are_given_as_they_lie_in_the_block(core):
    encoder = BlockEncoder(PLAN.block_length)
    encoder.begin(PLAN)
    frames = encoder.add_stored(core, answer(0, PAYLOADS), first_entry_id=0, entries=40)
    assert frames is not None
    assert bytes(frames) == expected()[0][128:]
    assert bytes(encoder.finish()) == expected()[1]
    assert len(encoder.padding) == PLAN.padding_bytes


class Careless(BlockEncoder):
    """Writes one wrong byte."""

    def add_many(self, first_entry_id, payloads):
        super().add_many(first_entry_id, payloads)
        self._view[self._position - 1] ^= 1


def test_what_python_framed_wrongly_differs_from_what_was_served():
    body = encode_block(PLAN, runs(None), Careless(PLAN.block_length), None)
    framed, whole = expected()
    assert body.sha256 == sha256(body.body).digest() != sha256(whole).digest()
    assert body.entries_sha256 == sha256(framed).hexdigest()
