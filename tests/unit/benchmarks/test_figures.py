"""Samples become rows and ratios as the results file promises."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import (
    CONTENDERS,
    SCHEMA,
    SEAWEED,
    VERSITY,
    Sample,
    check_results,
    joined,
    missing_rows,
    ratios_of,
    rows_of,
    spread,
)
from benchmarks.goals import judge


def sample(
    contender, round_number, *, seconds=1.0, cpu=2.0, error=None, kind="1 KiB", store=SEAWEED
):
    return Sample(
        contender=contender,
        kind=kind,
        round=round_number,
        bytes=500_000_000,
        entries=1000,
        seconds=seconds,
        store=store,
        cpu_s={"worker": cpu, "bookies": 1.0, "store": 4.0},
        peak_rss_mb={"worker": 100.0 + round_number, "broker": 700.0},
        requests={"PUT": 4, "GET": 6},
        error=error,
    )


WANTED = [(contender.name, "1 KiB", SEAWEED) for contender in CONTENDERS]


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
        "not_run": missing_rows(samples, WANTED, {"": "no time"}),
        "goals": judge(rows_of(samples), stores=[SEAWEED]),
    }


def test_a_row_is_the_spread_over_rounds_per_second_and_per_gigabyte(samples):
    (broker, ours) = rows_of(samples)
    assert broker["mb_per_s"] == {"min": 62.5, "median": 125.0, "max": 250.0}
    assert ours["cpu_s_per_gb"] == {"min": 14.0, "median": 14.0, "max": 14.0}
    assert ours["cpu_s_per_gb_without_store"]["median"] == 6.0
    assert ours["requests_by_kind"] == {"GET": 6, "PUT": 4}
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


def test_stores_are_never_mixed(samples):
    elsewhere = [sample("ours-copy", n, seconds=0.1, store=VERSITY) for n in (1, 2, 3)]
    assert ratios_of([*samples, *elsewhere]) == ratios_of(samples)
    places = [(row["contender"], row["store"]) for row in rows_of([*samples, *elsewhere])]
    assert places == [("broker", SEAWEED), ("ours-copy", SEAWEED), ("ours-copy", VERSITY)]


def test_a_wrong_hash_in_one_round_takes_away_the_figures_of_all(samples):
    rows = rows_of([*samples, sample("ours-copy", 4, error="expected a, found b")])
    ours = rows[1]
    assert ours["error"] == "expected a, found b"
    assert not set(ours) & {"mb_per_s", "cpu_s_per_gb", "peak_rss_mb", "requests_per_gb"}
    assert ratios_of([*samples, sample("broker", 4, error="failed")]) == []


def test_stages_of_one_work_add_up():
    whole = joined("ours-verify", [sample("ours-copy", 1), sample("ours-verify", 1, seconds=2.0)])
    assert (whole.seconds, whole.cpu_s["worker"]) == (3.0, 4.0)
    assert whole.requests == {"PUT": 8, "GET": 12}
    assert (whole.bytes, whole.peak_rss_mb["worker"]) == (500_000_000, 101.0)
    failed = joined("ours-verify", [sample("ours-copy", 1), sample("x", 1, error="lost")])
    assert failed.error == "lost"


def test_rows_with_fewer_rounds_than_they_need_are_told_with_the_reason(samples):
    once = sample("ours-verify (python)", 1)
    missing = missing_rows([*samples[:-1], once], WANTED, {"": "no time"})
    rounds = {item["contender"]: item["rounds"] for item in missing}
    enough = ("broker", "ours-copy", "ours-verify (python)")
    assert rounds == {c.name: 0 for c in CONTENDERS if c.name not in enough} | {"ours-copy": 2}
    assert {item["reason"] for item in missing} == {"no time"}


def test_what_a_store_lacks_has_the_reason_of_that_store():
    wanted = [("broker", "1 KiB", SEAWEED), ("broker", "1 KiB", VERSITY)]
    near, second = missing_rows([], wanted, {"": "no time", VERSITY: "there is no Go here"})
    assert (near["store"], near["reason"]) == (SEAWEED, "no time")
    assert (second["store"], second["reason"]) == (VERSITY, "there is no Go here")


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
        (lambda r: r["goals"][0].update(state="fine"), "not a judged goal"),
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
