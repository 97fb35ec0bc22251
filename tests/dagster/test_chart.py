"""The picture of the backlog: what its panels say, and that it stays a small part of an event."""

from base64 import b64decode
from datetime import UTC, date, datetime, timedelta
from struct import unpack

import pytest

from tiering_assets.defs.explain import chart
from tiering_assets.defs.explain.chart import CHART_BYTES_MAX, backlog_chart, drawn
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted
from tiering_assets.explain.reasons.backlog_reason import BacklogReason as Reason
from tiering_assets.fleet.by_day import Day
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.resources.settings import ObjectiveSettings

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NONE = ObjectiveSettings(copy_lag_age_s_max=0, delete_lag_age_s_max=0)
HOURS = ObjectiveSettings(copy_lag_age_s_max=7200, delete_lag_age_s_max=7200)
DAYS = [Day(day=date(2026, 2, 28), published=3 << 20, released=0)]


def waits(reason, size, *, hours, state=LedgerState.SEALED):
    return Counted(
        topic="t/ns/persistent/orders",
        namespace="t/ns",
        reason=reason,
        state=state,
        bytes=size,
        closed_at=NOW - timedelta(hours=hours),
        due_at=None,
        certified=False,
    )


def figures(*ledgers):
    return count_figures(ledgers, disturbances_last_hour=0, now=NOW)


def panels(*asked):
    """By title, what stands in each panel."""
    figure = drawn(*asked)
    assert figure is not None
    return {
        axes.get_title("left"): [
            *(one.get_text() for one in axes.get_yticklabels()),
            *(one.get_text() for one in axes.texts),
        ]
        for axes in figure.axes
    }


def test_bytes_that_wait_stand_by_reason_the_most_first():
    found = panels(
        figures(
            waits(Reason.BELOW_THRESHOLD, 1 << 20, hours=1),
            waits(Reason.FAILED, 5 << 20, hours=3),
            waits(Reason.DONE, 9 << 30, hours=99, state=LedgerState.RELEASED),
        ),
        NONE,
        [],
    )
    assert found["Bytes that wait, by reason"] == [
        *("failed", "below threshold"),
        *("5.0 MiB", "1.0 MiB"),
    ]


@pytest.mark.parametrize(("hours", "colour"), [(1, chart._GREEN), (3, chart._RED)])
def test_a_lag_stands_against_its_objective_and_is_red_beyond_it(hours, colour):
    found = figures(waits(Reason.FAILED, 10, hours=hours))
    texts = panels(found, HOURS, [])["Oldest lag against its objective"]
    assert texts == [
        *("copy lag\nat most 2.0 h", "delete lag\nat most 2.0 h"),
        *(f"{hours}.0 h", "0 s"),
    ]
    figure = drawn(found, HOURS, [])
    assert figure is not None
    [_reasons, lags] = figure.axes
    assert chart_colours(lags) == [colour, chart._GREEN]


def chart_colours(axes):
    from matplotlib.colors import to_hex

    return [to_hex(bar.get_facecolor()) for bar in axes.patches]


def test_days_are_drawn_where_the_catalogue_knows_them():
    title = "Published and released, by day (UTC)"
    assert title in panels(figures(), NONE, DAYS)
    assert title not in panels(figures(waits(Reason.FAILED, 1, hours=1)), NONE, [])


def test_nothing_is_drawn_of_nothing():
    assert backlog_chart(figures(), NONE, []) is None


def test_without_the_package_there_is_no_chart(monkeypatch):
    monkeypatch.setattr(chart, "find_spec", lambda _name: None)
    assert backlog_chart(figures(), HOURS, DAYS) is None


def test_the_fullest_picture_is_a_picture_within_its_limit():
    every = [waits(one, 4**k * 7, hours=k + 1) for k, one in enumerate(Reason)]
    days = [
        Day(day=date(2026, 2, 15) + timedelta(days=n), published=3**n << 20, released=2**n << 21)
        for n in range(14)
    ]
    found = backlog_chart(figures(*every), HOURS, days)
    assert found is not None
    assert len(str(found.value)) <= CHART_BYTES_MAX
    _text, _, rest = str(found.value).partition("base64,")
    png = b64decode(rest.removesuffix(")"))
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = unpack(">II", png[16:24])
    assert (width, height) == (1210, 286)
    assert found == backlog_chart(figures(*every), HOURS, days)
