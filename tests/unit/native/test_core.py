"""The library and the Python reference agree, on damage too, and a wrong library is noticed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from google_crc32c import extend, value
from hypothesis import given
from hypothesis import strategies as st

from tests.support.core_cases import CODEC, LEDGER, Cases, batch
from tests.support.fuzz_core import compiler
from tiering_assets.resources.bookkeeper.batch_body import find_records
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.runs import Run, find_in_batch, verify_batch
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import FormatError, IntegrityError
from tiering_assets.resources.native.build import HERE, SOURCE, TARGETS, build
from tiering_assets.resources.native.loader import this_loop

ROOT = Path(__file__).parents[3]
ALL_CASES = """
import pathlib, sys
from tests.support.core_cases import Cases
from tiering_assets.resources.native.loader import load, target
found = load(pathlib.Path(sys.argv[1]), target())
if found.core is None:
    raise SystemExit(f"it does not load: {found.said}")
cases = Cases(found.core)
for seed in range(10_000):
    cases.run(seed)
"""

# What a careless hand could write: a byte too far, a field not compared, a digest not made.
WRONG = {
    "a record may end a byte behind the answer": (
        "if (length < 0 || length > size - at - LENGTH_BYTES) return -1;",
        "if (length < 0 || length > size - at - LENGTH_BYTES + 1) return -1;",
    ),
    "an answer may hold nothing": ("if (count == 0 || (", "if (("),
    "the ledger is not compared": ("get64(stored) != ledger || ", ""),
    "the entry is not compared": (
        "if (get64(stored) != ledger || get64(stored + 8) != first + good) break;",
        "if (get64(stored) != ledger) break;",
    ),
    "a wrong digest is good": ("if (~crc != get32(stored + ENTRY_HEADER)) break;", ";"),
    "a copy is not digested": ("if (~crc != get32(stored + ENTRY_HEADER)) return -1;", ";"),
    "a frame may end behind its block": (
        "if (payload > room - to - FRAME_HEADER) return -1;",
        "if (payload > room - to) return -1;",
    ),
    "the order of frames is not compared": (" || get64(block + at + 4) != first + i", ""),
    "bytes of a header are not compared": ("if (block[i]) return 0;", ";"),
    "a block of another ledger is taken": (
        "if (ledger >= 0 && get64(block + 28) != ledger) return 0;",
        ";",
    ),
    "either kind of block is taken for the other": (
        "if (get32(block) != (ledger < 0 ? 0xFBDBABCB : 0x26A66D32)) return 0;",
        ";",
    ),
    "the end of padding is not compared": ("if (block[at] != pattern[i]) return -1;", ";"),
    "a varint may go on behind its metadata": (
        "shift < 70 && p < end; shift",
        "shift < 70; shift",
    ),
    "a varint may be of any length": ("shift < 70 && p < end; shift", "p < end; shift"),
    "a field may end behind its metadata": (" || value > (uint64_t)(end - p)", ""),
    "metadata may end behind its entry": (" || get32(p) > entry_end - p - 4) return", ") return"),
    "metadata may begin behind its entry": (
        "if (entry_end - p < 4 || get32(p) >",
        "if (get32(p) >",
    ),
    "fixed fields may end behind their metadata": ("if (end - p < 8) return 0;", ";"),
    "a message needs no name": ("required != 7 ||", "(required & 6) != 6 ||"),
    "a time of 64 bits is one": ("published > INT64_MAX || ", ""),
    "fewer messages than none are added": (" || batch < 0) return 0", ") return 0"),
    "a marker is a message": ("if (is_marker) return 1;", ";"),
    "every chunk is a message": ("chunks <= 1 || chunk == chunks - 1", "1"),
    "a field has the number zero": ("|| key < 8 ", ""),
    "what is no message is passed over": ("if (!are_messages) found[0] = -1;", ";"),
    "a repeated field is written where there is no room": ("if (f->found < f->room) {", "{"),
    "repeated fields are kept twice": ("} else if (key < KEYS &&", "}\n        if (key < KEYS &&"),
    "the first of a key counts": (
        "f->values[at] = (int64_t)value;",
        "if (!f->present[at]) f->values[at] = (int64_t)value;",
    ),
    "lengths are those of another slot": (" - f->numbers * f->rows] = length", "] = length"),
    "a field may be of any kind": ("(!is_bytes && (key & 7) != 0) || ", ""),
    "a key has more slots than there are": ("key < KEYS && f->slots", "f->slots"),
    "a field may end behind its message": (
        "if (value > (uint64_t)(end - p)) return 0;\n            length",
        "length",
    ),
    "a message may begin before its bytes": (
        "row >= f->rows || start < 0 || ",
        "row >= f->rows || ",
    ),
    "a message may end before it begins": (
        "start < 0 || start > end || end > size) return -1;\n        if (!read_fields",
        "start < 0 || end > size) return -1;\n        if (!read_fields",
    ),
    "a message may end behind all bytes": (
        "start > end || end > size) return -1;\n        if (!read_fields",
        "start > end) return -1;\n        if (!read_fields",
    ),
    "a row may be one of nobody's": ("row < 0 || row >= f->rows || ", ""),
    "a head may end behind its batch": ("if (head > end - at || !", "if (!"),
    "a head may begin behind its batch": ("if (end - at < LENGTH_BYTES) return 0;", ";"),
    "a payload may be less than nothing": (
        "if (size < 0 || size > end - at) return 0;",
        "if (size > end - at) return 0;",
    ),
    "a payload may end behind its batch": (
        "if (size < 0 || size > end - at) return 0;",
        "if (size < 0) return 0;",
    ),
    "a batch may end behind all bytes": ("end > size || count < 0", "count < 0"),
    "a batch may have more messages than rows": (
        " || count > f->rows - row) return -1",
        ") return -1",
    ),
    "fewer messages than none are read": (" || count < 0 || count > f", " || count > f"),
    "messages of an odd batch have no rows": (
        "payload_lengths)) odd[i] = 1;\n        row += count;",
        "payload_lengths)) odd[i] = 1;\n        else row += count;",
    ),
    "frames of other entries are found": (
        " || get64(block + at + 4) != first + good) break",
        ") break",
    ),
    "a frame may end behind the bytes of its block": (
        "if (length < 0 || length > size - at - FRAME_HEADER || get64(block + at + 4) != first + good",
        "if (length < 0 || get64(block + at + 4) != first + good",
    ),
    "three streams are joined in another order": (
        "ahead(table, ahead(table, crc) ^ second) ^ third",
        "ahead(table, ahead(table, second) ^ crc) ^ third",
    ),
}


@pytest.fixture(scope="module")
def core():
    loop = this_loop()
    assert loop.core is not None, loop.said
    return loop.core


@pytest.mark.parametrize("start", range(0, 10_000, 2500))
def test_both_agree(core, start):
    cases = Cases(core)
    for seed in range(start, start + 2500):
        cases.run(seed)


@given(st.binary(min_size=1, max_size=40_000), st.integers(0, 2**32 - 1))
def test_the_digest_is_that_of_another_library(data, before):
    core = this_loop().core
    assert core is not None
    assert core.crc32c(memoryview(bytearray(data))) == value(data)
    assert core.crc32c(memoryview(bytearray(data)), before) == extend(before, data)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile a source for this machine alone: one kind of machine shows what is wrong with it."""
    only = {"x86_64-gnu": TARGETS["x86_64-gnu"]}

    def compile_(text):
        folder = tmp_path_factory.mktemp("wrong")
        (folder / SOURCE).write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tiering_assets.resources.native.build.TARGETS", only)
            patch.setattr("tiering_assets.resources.native.build.WARNINGS", ())
            build(folder, cache=tmp_path_factory.getbasetemp() / "zig")
        return folder

    return compile_


@pytest.mark.wrong_library
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_library_is_noticed(compiled, what):
    right, wrong = WRONG[what]
    text = (HERE / SOURCE).read_text()
    assert text.count(right) >= 1
    folder = compiled(text.replace(right, wrong))
    command = [sys.executable, "-c", ALL_CASES, str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "AssertionError" in ended.stderr or ended.returncode < 0, ended.stderr


@pytest.mark.wrong_library
def test_the_right_library_passes_where_the_wrong_ones_fail(compiled):
    folder = compiled((HERE / SOURCE).read_text())
    subprocess.run([sys.executable, "-c", ALL_CASES, str(folder)], cwd=ROOT, check=True)


def test_half_a_minute_of_damage_against_forbidden_pages():
    fuzzed("--minutes", "0.5")


def test_half_a_minute_of_damage_under_an_address_sanitizer():
    if compiler() is None:
        pytest.skip("no C compiler here; the forbidden pages were tried")
    fuzzed("--minutes", "0.5", "--sanitizer")


def fuzzed(*arguments):
    command = [sys.executable, "-m", "tests.support.fuzz_core", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.split()[0]) > 1000


# ----- what callers make of it


def records_and_found(core, data, count_max=1000):
    records = memoryview(bytearray(data))
    return records, find_in_batch(core, records, count_max=count_max)


@pytest.mark.parametrize("seed", range(20))
def test_a_run_has_the_entries_that_python_finds(core, seed):
    data = batch(random.Random(seed), 40)
    runs = []
    for loop in (core, None):
        records, found = records_and_found(loop, data)
        run, failure = verify_batch(loop, CODEC, records, found, first_entry_id=40)
        assert failure is None
        runs.append(run)
    native, python = runs
    assert native is not None
    assert python is not None
    assert native.records is not None
    assert python.records is None
    assert (native.first_entry_id, native.count, native.payload_bytes) == (
        python.first_entry_id,
        python.count,
        python.payload_bytes,
    )
    assert [(i, bytes(p), n) for i, p, n in native.entries()] == [
        (i, bytes(p), n) for i, p, n in python.entries()
    ]


def test_what_is_not_plainly_good_is_said_by_python(core):
    data = batch(random.Random(3), 0)
    bounds = find_records(memoryview(data), count_max=1000)
    assert len(bounds) > 3
    data[bounds[3] - 1] ^= 1  # a byte of the third record
    records, found = records_and_found(core, data)
    run, failure = verify_batch(core, CODEC, records, found, first_entry_id=0)
    assert run is not None
    assert (run.count, run.records) == (2, None)
    assert isinstance(failure, IntegrityError)
    assert f"CRC32C digest of ledger {LEDGER} entry 2: stored" in str(failure)


def test_nothing_good_is_no_run(core):
    records, found = records_and_found(core, batch(random.Random(3), 0))
    run, failure = verify_batch(core, CODEC, records, found, first_entry_id=9)
    assert run is None
    assert str(failure).startswith(
        f"asked for ledger {LEDGER} entry 9, got ledger {LEDGER} entry 0"
    )


def test_records_that_do_not_fill_the_answer_are_pythons_error(core):
    with pytest.raises(FormatError, match="record 0 of a batch has 9 bytes; 3 are left"):
        records_and_found(core, b"\0\0\0\x09abc")


@pytest.mark.parametrize("digest_type", [DigestType.CRC32, DigestType.HMAC, DigestType.DUMMY])
def test_other_digests_are_pythons(core, digest_type):
    codec = EntryCodec(ledger_id=1, digest_type=digest_type, password=b"p")
    stored = codec.encode(entry_id=0, last_add_confirmed=-1, cumulative_length=3, payload=b"abc")
    records, found = records_and_found(core, len(stored).to_bytes(4, "big") + stored)
    run, failure = verify_batch(core, codec, records, found, first_entry_id=0)
    assert failure is None
    assert run is not None
    assert run.records is None
    assert [bytes(payload) for _id, payload, _length in run.entries()] == [b"abc"]


def test_a_buffer_that_python_may_not_write_is_pythons(core):
    data = bytes(batch(random.Random(5), 0))
    assert core.find(memoryview(data), count_max=9) is None
    assert core.find(memoryview(bytearray()), count_max=9) is None
    assert core.walk(memoryview(data), first_entry_id=0, count=1) is None
    assert (
        core.frame(memoryview(data), count=1, first_entry_id=0, out=memoryview(bytearray(9)))
        is None
    )
    found = find_in_batch(core, memoryview(data), count_max=1000)
    run, failure = verify_batch(core, CODEC, memoryview(data), found, first_entry_id=0)
    assert failure is None
    assert isinstance(run, Run)
    assert run.records is None
