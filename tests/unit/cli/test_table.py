"""What a terminal of some width shows of a table, and that it names what it does not show."""

import io
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tiering_assets.cli.shared.output import print_table
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.cli.terminal.measure import cut_middle, fold, share
from tiering_assets.cli.terminal.screen import Screen, printing_on
from tiering_assets.cli.terminal.show import tell
from tiering_assets.cli.terminal.table import ROWS_MAX, Role, lay_out

K = ValueKind
NOW = datetime(2026, 11, 25, 15, tzinfo=UTC)
LISTED = (
    Column("LEDGER", K.ID),
    Column("STATE", K.STATE),
    Column("ENTRIES", K.NUMBER),
    Column("SIZE", K.SIZE),
    Column("CLOSED", K.TIME),
    Column("BY"),
    Column("TOPIC", K.TOPIC),
)
LONG = "persistent://tenant/namespace/a-topic-with-a-very-long-name-of-its-own-partition-3"


def row(number=1, **changed):
    values = {
        "LEDGER": number,
        "STATE": "published",
        "ENTRIES": number * 10,
        "SIZE": number << 20,
        "CLOSED": NOW - timedelta(hours=number),
        "BY": "tierkeeper",
        "TOPIC": "persistent://t/ns/orders",
    }
    return tuple((values | changed).values())


def at_noon(kind, value):
    return tell(kind, value, NOW)


def laid(columns, rows, width):
    lines = lay_out(columns, rows, width=width, tell=at_noon)
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def test_at_100_columns_all_stands_side_by_side_with_ages_beside_times():
    lines = laid(LISTED, [row(1), row(20, BY="broker", STATE="sealed")], 100)
    assert lines == [
        "LEDGER  STATE      ENTRIES      SIZE  CLOSED                            BY          TOPIC",
        "1       published       10   1.0 MiB  2026-11-25 14:00:00Z  1.0 h ago   tierkeeper  t/ns/orders",
        "20      sealed         200  20.0 MiB  2026-11-24 19:00:00Z  20.0 h ago  broker      t/ns/orders",
    ]


def test_what_all_rows_share_is_said_once_and_never_of_ids_topics_and_states():
    lines = laid(LISTED, [row(1), row(2), row(3)], 100)
    assert lines[0] == "of every row: BY tierkeeper"
    assert lines[1].split() == ["LEDGER", "STATE", "ENTRIES", "SIZE", "CLOSED", "TOPIC"]
    assert "BY" in laid(LISTED, [row(1)], 100)[0]  # one row shares nothing


def test_a_long_topic_is_cut_in_its_middle_and_last_of_all():
    [head, first, *_, note] = laid(LISTED, [row(1, TOPIC=LONG), row(2, BY="broker")], 100)
    assert "tenant/namespace/a-…-its-own-partition-3" in first
    assert "1.0 h ago" in first
    assert "2026-" not in first  # the time went first
    assert "TOPIC" in head
    assert note.startswith("no room at 100 columns for")
    assert "the times of CLOSED, the middles of TOPIC" in note
    short = laid(LISTED, [row(1, TOPIC=LONG.replace("very-long-", "")), row(2, BY="broker")], 200)
    assert not any("…" in line for line in short)


def test_at_60_columns_the_lightest_go_and_are_named():
    [head, first, _second, *notes] = laid(LISTED, [row(1, TOPIC=LONG), row(2, BY="broker")], 60)
    assert head.split() == ["LEDGER", "STATE", "SIZE", "TOPIC"]
    assert first.startswith("1       published  1.0 MiB  tenant/")
    note = " ".join(notes)
    assert note.startswith("no room at 60 columns for ENTRIES, CLOSED, BY, the middles of TOPIC")
    assert note.endswith("--json, or a pipe, has them")


@pytest.mark.parametrize("width", [1, 5, 20, 33])
def test_a_terminal_without_room_still_has_ids_and_states(width):
    lines = laid(LISTED, [row(1, TOPIC=LONG), row(2, BY="broker")], width)
    text = "".join(line.strip() for line in lines)
    assert "published" in text
    assert "1" in text
    assert max(map(cell_len, lines)) <= width


def test_a_digest_and_what_findings_quote_is_whole_at_any_width():
    digest = "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"
    columns = (Column("RECORD", K.ID), Column("KEY", K.DIGEST), Column("DETAIL", K.FINDINGS))
    rows = [("a", digest, [f"sha256 {digest} differs", "entry 7 is missing"]), ("b", "", [])]
    for width in (100, 60, 20):
        lines = laid(columns, rows, width)
        assert sum(digest in line for line in lines) == 2
    lines = laid(columns, rows, 20)
    assert lines[-1] == "b"  # nothing is said of what is not there
    assert [line.strip() for line in lines if "entry 7" in line] == ["entry 7 is"]
    assert [line.strip() for line in laid(columns, rows, 60)][-2:] == ["entry 7 is missing", "b"]


def test_rows_end_at_200_and_the_rest_is_counted():
    lines = laid(LISTED, [row(i) for i in range(1, ROWS_MAX + 43)], 100)
    assert len(lines) == 1 + 1 + ROWS_MAX + 1
    assert lines[-1] == "and 42 more: --json, or a pipe, has every row"
    assert "more:" not in laid(LISTED, [row(i) for i in range(1, ROWS_MAX + 1)], 100)[-1]


def test_only_states_have_a_role_that_colours():
    lines = lay_out(LISTED, [row(1)], width=100, tell=at_noon)
    _head, first = lines
    assert [piece.text.strip() for piece in first if piece.role is Role.STATE] == ["published"]


# Printable text of all widths; what is not printable is escaped before it comes here.
texts = st.text(st.sampled_from("ab c/-漢字🙂é[]"), max_size=40)
values = {
    K.ID: st.integers(0, 10**12),
    K.TOPIC: st.builds("persistent://t/ns/{}".format, texts),
    K.STATE: st.sampled_from(["ok", "published", "broker may release first"]),
    K.NUMBER: st.integers(0, 10**12),
    K.SIZE: st.none() | st.integers(0, 10**15),
    K.TIME: st.none()
    | st.timedeltas(-timedelta(days=9), timedelta(days=900)).map(lambda ago: NOW - ago),
    K.AGE: st.none() | st.floats(-1e6, 1e9),
    K.TEXT: texts,
    K.FINDINGS: st.lists(texts, max_size=3),
    K.DIGEST: st.text("0123456789abcdef", max_size=90),
}


@st.composite
def tables(draw):
    others = draw(st.lists(st.sampled_from([*K]), max_size=7))
    kinds = [K.ID, K.STATE, *others, K.TOPIC]
    columns = [Column(f"{kind.value.upper()}{n}", kind) for n, kind in enumerate(kinds)]
    given_rows = st.tuples(*(values[kind] for kind in kinds))
    return columns, draw(st.lists(given_rows, max_size=6))


@given(tables(), st.integers(20, 160))
def test_no_line_is_wider_than_the_terminal_but_one_of_an_unbroken_word(table, width):
    columns, rows = table
    told = [
        tell(column.kind, value, NOW).lines
        for one in rows
        for column, value in zip(columns, one, strict=True)
        if column.kind in (K.FINDINGS, K.DIGEST)
    ]
    whole = {word for lines in told for line in lines for word in line.split(" ")}
    for line in laid(columns, rows, width):
        assert cell_len(line) <= width or line.split()[-1] in whole


@given(tables(), st.integers(60, 160))
def test_ids_states_and_topics_are_in_every_row_from_60_columns_on(table, width):
    columns, rows = table
    lines = lay_out(columns, rows, width=width, tell=at_noon)
    stripped = ["".join(piece.text for piece in line) for line in lines]
    whole = " ".join(" ".join(stripped).split())
    for one in rows:
        assert str(one[0]) in whole
        assert one[1].split()[0] in whole
    beginnings = [line for line in stripped if any(line.startswith(f"{one[0]} ") for one in rows)]
    assert len(beginnings) >= len({one[0] for one in rows})
    # A topic may be cut, and may stand below its row; its beginning is there.
    assert whole.count("t/ns/") >= len(rows) - sum("t/ns/…" in line for line in stripped)


@given(tables(), st.integers(20, 160))
def test_what_is_left_out_is_named(table, width):
    columns, rows = table
    text = " ".join(" ".join(laid(columns, rows, width)).split())
    for column in columns:
        below = column.kind in (K.FINDINGS, K.DIGEST, K.TOPIC, K.STATE, *([] if rows else [K.ID]))
        assert column.name in text or below or width < 30


@given(tables())
def test_nothing_is_lost_in_a_pipe(table):
    columns, rows = table
    out = io.StringIO()
    with redirect_stdout(out), printing_on(Screen()):
        print_table(columns, rows)
    [head, *lines] = out.getvalue().splitlines()
    starts = [head.index(column.name) for column in columns]
    cells = [
        [line[a:b].rstrip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        for line in lines
    ]
    assert len(lines) == sum(max(1, *(len(v) for v in r if isinstance(v, list)), 0) for r in rows)
    for row_ in rows:
        said = [cells.pop(0)]
        deep = max([1, *(len(v) for v in row_ if isinstance(v, list))])
        said += [cells.pop(0) for _ in range(deep - 1)]
        for number, (column, value) in enumerate(zip(columns, row_, strict=True)):
            shown = [line[number] for line in said]
            if isinstance(value, list):
                whole = [text.rstrip() or "-" for text in value] or ["-"]
                assert [x or "-" for x in shown[: len(whole)]] == whole
            elif column.kind in (K.ID, K.STATE, K.TOPIC):
                assert shown == [str(value).rstrip()] * deep
            elif isinstance(value, str):
                assert shown[0] == (value.rstrip() or ("-" if not value else ""))


@given(texts, st.integers(2, 30))
def test_a_fold_loses_nothing(text, width):
    lines = fold(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert max(map(cell_len, lines)) <= width


@given(texts, st.integers(1, 60))
def test_a_cut_keeps_both_ends(text, width):
    cut = cut_middle(text, width)
    assert cell_len(cut) <= width
    if cut != text:
        head, tail = cut.split("…")
        assert text.startswith(head)
        assert text.endswith(tail)


@given(st.integers(0, 100), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), min_size=1))
def test_room_is_shared_and_nobody_gets_more_than_it_wants(room, asked):
    wanted = [max(pair) for pair in asked]
    least = [min(pair) for pair in asked]
    got = share(room, wanted, least)
    if got is None:
        assert sum(least) > room
        return
    assert sum(got) <= room
    assert all(low <= one <= high for low, one, high in zip(least, got, wanted, strict=True))
    assert sum(got) == min(room, sum(wanted))
