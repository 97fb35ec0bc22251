"""A goal is met by its figure, or stands at a limit that is told, or is missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import CONTENDERS, SEAWEED, VERSITY
from benchmarks.goals import GOALS, Figure, State, goal_faults, judge
from benchmarks.plan import ALL_KINDS, wanted_rows

OFFLOAD = "offload with full verification / broker's, MB/s"


def row(contender, mb_per_s, *, cpu=1.0, worker=1.0, kind="100 B", store=SEAWEED):
    return {
        "contender": contender,
        "entries_of": kind,
        "store": store,
        "mb_per_s": {"median": mb_per_s},
        "cpu_s_per_gb": {"median": cpu},
        "cpu_s_per_gb_without_store": {"median": cpu},
        "cpu_s_per_gb_by_role": {"worker": {"median": worker}},
    }


def goal(rows, measure, *, kind="100 B", store=SEAWEED, **more):
    found = [
        one
        for one in judge(rows, stores=[SEAWEED, VERSITY], **more)
        if (one["measure"], one.get("entries_of"), one.get("store")) == (measure, kind, store)
    ]
    assert len(found) == 1
    return found[0]


def test_a_ratio_of_medians_at_its_bound_is_met_and_below_it_missed():
    met = goal([row("broker", 3.0), row("ours-verify", 24.0)], OFFLOAD)
    assert (met["value"], met["goal"], met["state"]) == (8.0, ">= 8", State.MET)
    missed = goal([row("broker", 3.0), row("ours-verify", 23.9)], OFFLOAD)
    assert missed["state"] == State.MISSED
    assert "limit" not in missed


def test_costs_are_bounded_from_above():
    rows = [row("broker", 1, cpu=400), row("ours-verify", 1, cpu=50)]
    measure = "CPU s/GB without the store's / broker's"
    assert goal(rows, measure)["state"] == State.MET
    rows[1] = row("ours-verify", 1, cpu=51)
    assert goal(rows, measure)["state"] == State.MISSED


def test_a_workers_cpu_is_its_role_of_one_row():
    measure = "worker CPU s/GB, copy and verify"
    for worker, state in ((4.0, State.MET), (4.1, State.MISSED)):
        rows = [row("ours-verify", 100, worker=worker, kind="1 KiB")]
        assert goal(rows, measure, kind="1 KiB")["state"] == state


@pytest.mark.parametrize(("ceiling", "state"), [(25.0, State.LIMIT), (25.1, State.MISSED)])
def test_four_fifths_of_bare_clients_replace_an_offloads_goal(ceiling, state):
    rows = [row("broker", 10.0), row("ours-verify", 20.0), row("ceiling-put-get", ceiling)]
    found = goal(rows, OFFLOAD)
    assert found["state"] == state
    assert found["share_of_ceiling"] == pytest.approx(20 / ceiling, abs=0.005)
    assert ("80% of ceiling-put-get" in found.get("limit", "")) == (state == State.LIMIT)


def test_the_ceiling_replaces_no_other_goal():
    rows = [row("broker", 1, cpu=1), row("ours-verify", 9, cpu=9), row("ceiling-put-get", 9)]
    assert goal(rows, "CPU s/GB without the store's / broker's")["state"] == State.MISSED


CPU_RATIO = "CPU s/GB without the store's / broker's"
WORKER = "worker CPU s/GB, copy and verify"


def ceilings(bare, *, kind="100 B", store=SEAWEED):
    """Bare clients, bookies and digests; the latter two are of the first store."""
    return [
        row("ceiling-put-get", 99.0, cpu=bare, worker=bare, kind=kind, store=store),
        row("ceiling-bookies", 99.0, cpu=1.5, worker=1.5, kind=kind),
        row("ceiling-digests", 99.0, cpu=0.5, worker=0.5, kind=kind),
    ]


@pytest.mark.parametrize(("bare", "state"), [(20.5, State.LIMIT), (20.4, State.MISSED)])
def test_cores_that_the_least_work_keeps_busy_replace_an_offloads_goal(bare, state):
    """8 x 10 MB/s at 22.5 CPU s/GB are 1.8 of two cores, and so much is taken for all of them."""
    rows = [row("broker", 10.0), row("ours-verify", 20.0), *ceilings(bare)]
    found = goal(rows, OFFLOAD, cores=2)
    assert found["state"] == state
    assert ("2 cores bear 89 MB/s at most. The goal asks for 80" in found.get("limit", "")) == (
        state == State.LIMIT
    )
    assert goal(rows, OFFLOAD, cores=4)["state"] == State.MISSED
    assert goal(rows, OFFLOAD)["state"] == State.MISSED
    for missing in (2, 3, 4):
        some = rows[:missing] + rows[missing + 1 :]
        assert goal(some, OFFLOAD, cores=2)["state"] == State.MISSED
    met = [row("broker", 10.0), row("ours-verify", 80.0), *rows[2:]]
    assert goal(met, OFFLOAD, cores=2)["state"] == State.MET


def test_the_second_store_s_cores_count_the_first_one_s_bookies_and_digests():
    rows = [
        row("broker", 10.0, store=VERSITY),
        row("ours-verify", 20.0, store=VERSITY),
        *ceilings(21.0, store=VERSITY),
    ]
    assert goal(rows, OFFLOAD, store=VERSITY, cores=2)["state"] == State.LIMIT


@pytest.mark.parametrize(("bare", "state"), [(7.0, State.LIMIT), (6.9, State.MISSED)])
def test_a_cost_of_which_the_least_work_leaves_a_tenth_is_replaced_by_it(bare, state):
    """An eighth of 80 CPU s/GB, and nine tenths of that."""
    rows = [row("broker", 1, cpu=80.0), row("ours-verify", 9, cpu=10.1), *ceilings(bare)]
    found = goal(rows, CPU_RATIO)
    assert found["state"] == state
    assert ("spend 9 CPU s/GB" in found.get("limit", "")) == (state == State.LIMIT)
    assert ("The goal grants 10" in found.get("limit", "")) == (state == State.LIMIT)
    assert goal(rows[:-1], CPU_RATIO)["state"] == State.MISSED
    met = [row("broker", 1, cpu=80.0), row("ours-verify", 9, cpu=10.0), *ceilings(bare)]
    assert goal(met, CPU_RATIO)["state"] == State.MET


@pytest.mark.parametrize(("bare", "state"), [(1.6, State.LIMIT), (1.5, State.MISSED)])
def test_a_workers_least_work_is_of_its_role(bare, state):
    rows = [row("ours-verify", 9, cpu=99.0, worker=4.1, kind="1 KiB")]
    rows += [one | {"cpu_s_per_gb": {"median": 99.0}} for one in ceilings(bare, kind="1 KiB")]
    assert goal(rows, WORKER, kind="1 KiB")["state"] == state


def test_no_least_work_replaces_a_goal_that_compares_us_with_ourselves():
    kind = "10 KiB, 20 ledgers"
    measure = "batch of 20, signed, with publish and release / with verify only, MB/s"
    rows = [row("ours-release (signed)", 7.9, kind=kind), row("ours-verify", 10.0, kind=kind)]
    rows += ceilings(9000.0, kind=kind)
    assert goal(rows, measure, kind=kind, cores=2)["state"] == State.MISSED


def test_a_limit_in_words_replaces_the_goal_of_its_name_alone():
    rows = [row("broker", 10.0), row("ours-verify", 20.0)]
    limits = {f"{OFFLOAD}, 100 B, {SEAWEED}": "the disk writes 20 MB/s"}
    assert goal(rows, OFFLOAD, limits=limits)["limit"] == "the disk writes 20 MB/s"
    rows = [row("broker", 10.0, store=VERSITY), row("ours-verify", 20.0, store=VERSITY)]
    assert goal(rows, OFFLOAD, store=VERSITY, limits=limits)["state"] == State.MISSED


def test_what_was_not_measured_or_failed_says_so():
    failed = {"contender": "ours-verify", "entries_of": "100 B", "store": SEAWEED, "error": "x"}
    found = goal([row("broker", 3.0), failed], OFFLOAD)
    assert (found["value"], found["state"]) == (None, State.UNMEASURED)
    assert found["why"] == "no row of ours-verify"
    assert goal([row("ours-verify", 3.0)], OFFLOAD)["why"] == "no row of broker"


def test_figures_of_other_commands_are_judged_alike():
    figures = [
        Figure(measure="a", value=2.0, bound=2.0, at_most=True, by="make a"),
        Figure(measure="b", value=1.0, bound=2.0, at_most=False, by="make b"),
        Figure(measure="c", value=1.0, bound=2.0, at_most=False, by="make c", otherwise="why"),
        Figure(measure="d", value=None, bound=2.0, at_most=False, by="make d", why_none="not run"),
    ]
    found = {one["measure"]: one for one in judge([], stores=[], figures=figures)}
    assert {name: one["state"] for name, one in found.items()} == {
        "a": State.MET,
        "b": State.MISSED,
        "c": State.LIMIT,
        "d": State.UNMEASURED,
    }
    assert (found["c"]["limit"], found["d"]["why"]) == ("why", "not run")


def test_every_goal_is_of_a_row_that_a_whole_run_has():
    wanted = {(name, kind) for name, kind, store in wanted_rows() if store == SEAWEED}
    for one in GOALS:
        assert (one.contender, one.kind) in wanted
        assert one.over is None or (one.over, one.kind) in wanted


medians = st.floats(min_value=0.01, max_value=1e6)


@given(st.data())
def test_whatever_the_rows_each_goal_is_judged_once_and_well(data):
    rows = [
        row(c.name, data.draw(medians), cpu=data.draw(medians), kind=kind.name)
        for c in data.draw(st.lists(st.sampled_from(CONTENDERS), unique=True))
        for kind in data.draw(st.lists(st.sampled_from(ALL_KINDS), unique=True, max_size=2))
    ]
    judged = judge(rows, stores=[SEAWEED])
    assert len(judged) == len(GOALS)
    assert [fault for one in judged for fault in goal_faults(one)] == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"state": "fine"}, "not a judged goal"),
        ({"goal": ""}, "no goal"),
        ({"state": "limit"}, "a limit without words"),
        ({"value": None}, "its value is None"),
        ({"state": "not measured"}, "no reason"),
    ],
)
def test_a_goal_that_says_too_little_is_none(change, fault):
    good = {"measure": "m", "goal": ">= 1", "by": "make bench", "state": "met", "value": 1.0}
    assert goal_faults(good) == []
    assert any(fault in found for found in goal_faults(good | change))
