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
    rows = [row("broker", 2.6), row("ours-verify", 20.0), row("ceiling-put-get", ceiling)]
    found = goal(rows, OFFLOAD)
    assert found["state"] == state
    assert found["share_of_ceiling"] == pytest.approx(20 / ceiling, abs=0.005)
    assert ("ceiling-put-get reached" in found.get("limit", "")) == (state == State.LIMIT)
    assert ("Ours is 80% of it" in found.get("limit", "")) == (state == State.LIMIT)


def test_the_ceiling_replaces_no_other_goal():
    rows = [row("broker", 1, cpu=1), row("ours-verify", 9, cpu=9), row("ceiling-put-get", 9)]
    assert goal(rows, "CPU s/GB without the store's / broker's")["state"] == State.MISSED


CPU_RATIO = "CPU s/GB without the store's / broker's"
WORKER = "worker CPU s/GB, copy and verify"


def least(bare, *, mb_per_s=99.0, kind="100 B", store=SEAWEED):
    """All of the least work by bare clients, in CPU s/GB and MB/s."""
    name = "ceiling-least-work"
    return row(name, mb_per_s, cpu=bare, worker=bare, kind=kind, store=store)


@pytest.mark.parametrize(("reached", "state"), [(25.0, State.LIMIT), (25.1, State.MISSED)])
@pytest.mark.parametrize("store", [SEAWEED, VERSITY])
def test_four_fifths_of_the_least_work_replace_an_offloads_goal(reached, state, store):
    rows = [
        row("broker", 2.6, store=store),
        row("ours-verify", 20.0, store=store),
        row("ceiling-put-get", 99.0, store=store),
        least(1.0, mb_per_s=reached, store=store),
    ]
    found = goal(rows, OFFLOAD, store=store)
    assert found["state"] == state
    assert ("ceiling-least-work reached 25 MB/s" in found.get("limit", "")) == (
        state == State.LIMIT
    )


@pytest.mark.parametrize("name", ["ceiling-least-work", "ceiling-put-get"])
@pytest.mark.parametrize(("reached", "state"), [(88.0, State.LIMIT), (89.0, State.MISSED)])
def test_a_pace_that_bare_clients_do_not_reach_is_replaced_by_theirs(name, reached, state):
    """The goal is 80 MB/s; nine tenths of what bare clients reach is all that may be asked for."""
    rows = [row("broker", 10.0), row("ours-verify", 20.0), row(name, reached)]
    found = goal(rows, OFFLOAD)
    assert found["state"] == state
    assert ("the goal asks for 80" in found.get("limit", "")) == (state == State.LIMIT)
    assert goal(rows[:-1], OFFLOAD)["state"] == State.MISSED
    met = [row("broker", 10.0), row("ours-verify", 80.0), rows[-1]]
    assert goal(met, OFFLOAD)["state"] == State.MET


def test_of_two_ceilings_the_lower_one_is_told():
    rows = [row("broker", 10.0), row("ours-verify", 20.0), row("ceiling-put-get", 24.0)]
    assert goal(rows, OFFLOAD)["limit"].startswith("ceiling-put-get reached 24")
    told = goal([*rows, least(1.0, mb_per_s=19.0)], OFFLOAD)["limit"]
    assert told.startswith("ceiling-least-work reached 19 MB/s on the same bytes. Ours is 105%")


def test_a_limit_of_one_store_is_none_of_the_other():
    rows = [
        row("broker", 10.0, store=VERSITY),
        row("ours-verify", 20.0, store=VERSITY),
        least(1.0, mb_per_s=20.0),
    ]
    assert goal(rows, OFFLOAD, store=VERSITY)["state"] == State.MISSED


@pytest.mark.parametrize(("bare", "state"), [(9.0, State.LIMIT), (8.9, State.MISSED)])
def test_a_cost_of_which_the_least_work_leaves_a_tenth_is_replaced_by_it(bare, state):
    """An eighth of 80 CPU s/GB, and nine tenths of that."""
    rows = [row("broker", 1, cpu=80.0), row("ours-verify", 9, cpu=10.1), least(bare)]
    found = goal(rows, CPU_RATIO)
    assert found["state"] == state
    assert ("spends 9 CPU s/GB" in found.get("limit", "")) == (state == State.LIMIT)
    assert ("The goal grants 10" in found.get("limit", "")) == (state == State.LIMIT)
    assert goal(rows[:-1], CPU_RATIO)["state"] == State.MISSED
    met = [row("broker", 1, cpu=80.0), row("ours-verify", 9, cpu=10.0), least(bare)]
    assert goal(met, CPU_RATIO)["state"] == State.MET


@pytest.mark.parametrize(("bare", "state"), [(3.6, State.LIMIT), (3.5, State.MISSED)])
def test_a_workers_least_work_is_of_its_role(bare, state):
    rows = [row("ours-verify", 9, cpu=99.0, worker=4.1, kind="1 KiB")]
    rows.append(least(bare, kind="1 KiB") | {"cpu_s_per_gb": {"median": 99.0}})
    assert goal(rows, WORKER, kind="1 KiB")["state"] == state


def test_no_least_work_replaces_a_goal_that_compares_us_with_ourselves():
    kind = "10 KiB, 20 ledgers"
    measure = "batch of 20, signed, with publish and release / with verify only, MB/s"
    rows = [row("ours-release (signed)", 7.9, kind=kind), row("ours-verify", 10.0, kind=kind)]
    rows.append(least(9000.0, mb_per_s=1.0, kind=kind))
    assert goal(rows, measure, kind=kind)["state"] == State.MISSED


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
