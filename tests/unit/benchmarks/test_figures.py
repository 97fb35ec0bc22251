"""Samples become rows and ratios as the results file promises."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import (
    CONTENDERS,
    SCHEMA,
    Sample,
    check_results,
    joined,
    missing_rows,
    ratios_of,
    rows_of,
    share_that_fits,
    spread,
)


def sample(contender, round_number, *, seconds=1.0, cpu=2.0, error=None, kind="1 KiB"):
    return Sample(
        contender=contender,
        kind=kind,
        round=round_number,
        bytes=500_000_000,
        entries=1000,
        seconds=seconds,
        cpu_s={"worker": cpu, "bookies": 1.0},
        peak_rss_mb={"worker": 100.0 + round_number, "broker": 700.0},
        requests=10,
        error=error,
    )


@pytest.fixture
def samples():
    return [
        *(sample("broker", n, seconds=seconds) for n, seconds in ((1, 2.0), (2, 4.0), (3, 8.0))),
        *(sample("ours-copy", n, seconds=seconds) for n, seconds in ((1, 1.0), (2, 1.0), (3, 1.0))),
    ]


def results_of(samples):
    return {
        "schema": SCHEMA,
        "measured_at": "2026-01-02T03:04:05+00:00",
        "machine": {},
        "settings": {},
        "rows": rows_of(samples),
        "ratios": ratios_of(samples),
        "not_run": missing_rows(samples, ["1 KiB"], "no time"),
    }


def test_a_row_is_the_spread_over_rounds_per_second_and_per_gigabyte(samples):
    (broker, ours) = rows_of(samples)
    assert broker["mb_per_s"] == {"min": 62.5, "median": 125.0, "max": 250.0}
    assert ours["cpu_s_per_gb"] == {"min": 6.0, "median": 6.0, "max": 6.0}
    assert ours["cpu_s_per_gb_by_role"]["bookies"]["median"] == 2.0
    assert ours["peak_rss_mb"] == {"min": 101.0, "median": 102.0, "max": 103.0}
    assert broker["peak_rss_mb"]["median"] == 700.0  # the broker does its contender's work
    assert ours["requests_per_gb"]["median"] == 20.0
    assert ours["entries_per_s"]["median"] == 1000.0


def test_a_ratio_is_taken_within_each_round(samples):
    (ratio,) = ratios_of(samples)
    assert (ratio["contender"], ratio["over"]) == ("ours-copy", "broker")
    assert ratio["mb_per_s"] == {"min": 2.0, "median": 4.0, "max": 8.0}
    assert ratio["cpu_s_per_gb"] == {"min": 1.0, "median": 1.0, "max": 1.0}


def test_a_round_that_one_side_lacks_is_no_ratio(samples):
    (ratio,) = ratios_of([s for s in samples if (s.contender, s.round) != ("broker", 3)])
    assert ratio["mb_per_s"]["max"] == 4.0
    assert ratios_of([s for s in samples if s.contender != "broker"]) == []


def test_a_wrong_hash_in_one_round_takes_away_the_figures_of_all(samples):
    rows = rows_of([*samples, sample("ours-copy", 4, error="expected a, found b")])
    ours = rows[1]
    assert ours["error"] == "expected a, found b"
    assert not set(ours) & {"mb_per_s", "cpu_s_per_gb", "peak_rss_mb", "requests_per_gb"}
    assert ratios_of([*samples, sample("broker", 4, error="failed")]) == []


def test_stages_of_one_work_add_up():
    whole = joined("ours-verify", [sample("ours-copy", 1), sample("ours-verify", 1, seconds=2.0)])
    assert (whole.seconds, whole.cpu_s["worker"], whole.requests) == (3.0, 4.0, 20)
    assert (whole.bytes, whole.peak_rss_mb["worker"]) == (500_000_000, 101.0)
    failed = joined("ours-verify", [sample("ours-copy", 1), sample("x", 1, error="lost")])
    assert failed.error == "lost"


def test_rows_with_fewer_than_three_rounds_are_told_with_the_reason(samples):
    missing = missing_rows(samples[:-1], ["1 KiB"], "no time")
    rounds = {item["contender"]: item["rounds"] for item in missing}
    assert rounds == {c.name: 0 for c in CONTENDERS if c.name not in ("broker", "ours-copy")} | {
        "ours-copy": 2
    }
    assert {item["reason"] for item in missing} == {"no time"}


def test_a_results_file_is_one_and_a_changed_one_is_not(samples):
    results = results_of(samples)
    assert check_results(results) == []
    for change, fault in (
        (lambda r: r.pop("machine"), "machine"),
        (lambda r: r.update(schema=SCHEMA + 1), "schema"),
        (lambda r: r["rows"][0].pop("mb_per_s"), "rows[0].mb_per_s"),
        (lambda r: r["rows"][0]["cpu_s_per_gb"].update(min=1e9), "rows[0].cpu_s_per_gb"),
        (lambda r: r["rows"][0].update(contender="x"), "'x'"),
        (lambda r: r["rows"][0].update(error="bad"), "error and mb_per_s"),
        (lambda r: r["ratios"][0].update(mb_per_s=1), "ratios[0].mb_per_s"),
        (lambda r: r["not_run"][0].update(reason=""), "no reason"),
    ):
        changed = copy.deepcopy(results)
        change(changed)
        assert any(fault in found for found in check_results(changed)), fault
    assert check_results([]) == ["not a JSON object"]


@given(st.lists(st.floats(min_value=0.001, max_value=1e9), min_size=1, max_size=9))
def test_a_spread_is_ordered_and_holds_every_value_to_four_digits(values):
    found = spread(values)
    assert found["min"] <= found["median"] <= found["max"]
    assert found["min"] == pytest.approx(min(values), rel=1e-3)
    assert found["max"] == pytest.approx(max(values), rel=1e-3)


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        spread([])


@given(
    st.lists(st.floats(min_value=1, max_value=200), min_size=1, max_size=5),
    st.floats(min_value=-10, max_value=2000),
)
def test_the_share_fits_the_time_left_by_its_own_reckoning(warm, left_s):
    took = {str(n): seconds for n, seconds in enumerate(warm)}
    share = share_that_fits(took, warm_share=0.25, rounds=3, left_s=left_s)
    assert 0.02 <= share <= 1
    predicted = 3 * sum(s * (0.5 + 0.5 * share / 0.25) for s in warm)
    assert predicted <= left_s + 0.01 or share == 0.02
