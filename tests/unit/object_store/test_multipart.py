import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.object_store.multipart import ExpectedPart, accept_parts
from tiering_assets.resources.object_store.store import Part

BODIES = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=8)
DAMAGE = st.sampled_from(["none", "missing", "size", "sha256", "etag"])


def row(number, body):
    return ExpectedPart(
        part_number=number,
        size=len(body),
        sha256=hashlib.sha256(body).digest(),
        etag=hashlib.md5(body).hexdigest(),
    )


def listed(number, body, *, checksums):
    return Part(
        part_number=number,
        size=len(body),
        etag=f'"{hashlib.md5(body).hexdigest()}"',
        sha256=hashlib.sha256(body).digest() if checksums else None,
    )


@given(bodies=BODIES, checksums=st.booleans(), data=st.data())
def test_exactly_the_sound_parts_are_accepted_and_the_rest_sent_again(bodies, checksums, data):
    parts, sound = [], []
    for number, body in enumerate(bodies, start=1):
        part, damage = listed(number, body, checksums=checksums), data.draw(DAMAGE)
        if damage == "missing":
            continue
        if damage == "size":
            part = replace(part, size=part.size + 1)
        elif damage == "sha256" and checksums:
            part = replace(part, sha256=hashlib.sha256(body + b"!").digest())
        elif damage in ("etag", "sha256") and not checksums:
            part = replace(part, etag='"00000000000000000000000000000000"')
        else:  # with a good SHA-256 the ETag may be anything (encrypted buckets)
            part = replace(part, etag='"opaque"') if damage == "etag" else part
            sound.append(number)
        parts.append(part)
    rows = [row(number, body) for number, body in enumerate(bodies, start=1)]
    match = accept_parts(rows, data.draw(st.permutations(parts)))
    assert [part.part_number for part in match.accepted] == sound
    assert set(match.send_again) == set(range(1, len(bodies) + 1)) - set(sound)
    assert match.may_complete == (len(sound) == len(bodies))
    by_number = {part.part_number: part for part in parts}
    for part in match.accepted:
        assert part.etag == by_number[part.part_number].etag
        assert part.sha256 == rows[part.part_number - 1].sha256


def test_without_any_checksum_to_compare_a_part_is_not_believed():
    part = listed(1, b"x", checksums=False)
    assert accept_parts([replace(row(1, b"x"), etag=None)], [part]).send_again == (1,)


def test_a_part_that_no_row_names_means_another_writer():
    parts = [listed(1, b"x", checksums=True), listed(2, b"y", checksums=True)]
    with pytest.raises(IntegrityError, match="part 2"):
        accept_parts([row(1, b"x")], parts)


@pytest.mark.parametrize("checksums", [True, False])
def test_of_a_part_listed_twice_the_one_that_equals_the_row_counts(checksums):
    bad, good = listed(1, b"bad", checksums=checksums), listed(1, b"good", checksums=checksums)
    for both in ([bad, good], [good, bad], [good, good]):
        assert [p.etag for p in accept_parts([row(1, b"good")], both).accepted] == [good.etag]
    assert accept_parts([row(1, b"good")], [bad, bad]).send_again == (1,)


@pytest.mark.parametrize("numbers", [[2], [1, 3], [1, 1], [0, 1]])
def test_rows_with_gaps_or_twins_are_the_callers_mistake(numbers):
    with pytest.raises(ValueError, match="each once"):
        accept_parts([row(number, b"x") for number in numbers], [])
