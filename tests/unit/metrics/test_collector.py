"""What a scrape gets, read back by Prometheus' own parser."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tiering_assets.catalogue.facts.work_done import WorkDone
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted, FiguresByTopic
from tiering_assets.explain.figures.objectives import decide_objectives
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.explain.reasons.backlog_reason import BacklogReason as R
from tiering_assets.look.ledger.states import LedgerState as S
from tiering_assets.metrics.collector import FleetCollector, exposition, make_registry
from tiering_assets.metrics.surveyed import Surveyed
from tiering_assets.resources.settings import ObjectiveSettings

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def figures(*ledgers):
    """Ledgers as (namespace, topic, reason, state, bytes, age in seconds, certified)."""
    return count_figures(
        [
            Counted(
                topic=f"persistent://{namespace}/{topic}",
                namespace=namespace,
                reason=reason,
                state=state,
                bytes=size,
                closed_at=NOW - timedelta(seconds=age_s),
                due_at=NOW - timedelta(seconds=age_s),
                certified=certified,
            )
            for namespace, topic, reason, state, size, age_s, certified in ledgers
        ],
        disturbances_last_hour=3,
        now=NOW,
    )


FLEET = figures(
    ("t/a", "x", R.NOT_ADMITTED, S.SEALED, 10, 60, False),
    ("t/a", "y", R.FAILED, S.SEALED, 30, 90, False),
    ("t/b", "z", R.CAPPED, S.RELEASE_DUE, 5, 40, True),
    ("t/b", "z", R.UNSAFE, S.PUBLISHED, 6, 30, False),
)


class Clock:
    """Seconds since the survey."""

    since = 0.0

    def __call__(self):
        return NOW.timestamp() + self.since


@pytest.fixture
def clock():
    return Clock()


def samples(collector):
    text = exposition(make_registry(collector))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def collector(clock, topics_max=0):
    return FleetCollector(topics_max=topics_max, clock=clock)


def test_the_figures_by_namespace_reason_and_objective(clock):
    serving = collector(clock)
    objectives = ObjectiveSettings(
        copy_lag_bytes_max=30, copy_lag_age_s_max=0, delete_lag_age_s_max=0, stuck_max=100
    )
    found = Surveyed(figures=FLEET, findings=decide_objectives(FLEET, objectives))
    serving.succeeded(found, took_s=1.5)
    found = samples(serving)
    expected = {
        ("tierkeeper_copy_lag_bytes", "t/a"): 40,
        ("tierkeeper_copy_lag_bytes", "t/b"): 0,
        ("tierkeeper_copy_lag_ledgers", "t/a"): 2,
        ("tierkeeper_copy_lag_oldest_seconds", "t/a"): 90,
        ("tierkeeper_delete_lag_bytes", "t/b"): 5,
        ("tierkeeper_delete_lag_oldest_seconds", "t/b"): 40,
        ("tierkeeper_stuck_ledgers", "t/a"): 1,
        ("tierkeeper_stuck_ledgers", "t/b"): 1,
        ("tierkeeper_ledgers", "not admitted"): 1,
        ("tierkeeper_ledgers", "open"): 0,
        ("tierkeeper_ledger_bytes", "failed"): 30,
        ("tierkeeper_topics",): 3,
        ("tierkeeper_verified_ratio",): 0.5,
        ("tierkeeper_disturbances_last_hour",): 3,
        ("tierkeeper_objective_limit", "copy_lag_bytes"): 30,
        ("tierkeeper_objective_level", "copy_lag_bytes"): 2,
        ("tierkeeper_objective_level", "stuck"): 0,
        ("tierkeeper_survey_success",): 1,
        ("tierkeeper_survey_duration_seconds",): 1.5,
        ("tierkeeper_survey_timestamp_seconds",): NOW.timestamp(),
        ("tierkeeper_surveys_total", "success"): 1,
    }
    assert expected.items() <= found.items()
    reasons = {name[1] for name in found if name[0] == "tierkeeper_ledgers"}
    assert reasons == {reason.value for reason in BacklogReason}


def test_a_failed_survey_marks_the_old_figures_and_their_age_grows(clock):
    serving = collector(clock)
    serving.succeeded(Surveyed(figures=FLEET), took_s=1)
    clock.since = 60
    serving.failed(took_s=20)
    clock.since = 90
    found = samples(serving)
    assert found["tierkeeper_survey_success",] == 0
    assert found["tierkeeper_survey_age_seconds",] == 90
    assert found["tierkeeper_surveys_total", "failure"] == 1
    assert found["tierkeeper_copy_lag_bytes", "t/a"] == 40
    serving.succeeded(Surveyed(figures=figures()), took_s=1)
    assert samples(serving)["tierkeeper_survey_success",] == 1


def test_before_the_first_good_survey_there_are_no_figures(clock):
    serving = collector(clock)
    serving.failed(took_s=1)
    assert {name[0] for name in samples(serving)} == {
        "tierkeeper_build_info",
        "tierkeeper_survey_success",
        "tierkeeper_survey_duration_seconds",
        "tierkeeper_surveys_total",
    }


def test_a_namespace_that_is_gone_is_no_longer_told(clock):
    serving = collector(clock)
    serving.succeeded(Surveyed(figures=FLEET), took_s=1)
    serving.succeeded(
        Surveyed(figures=figures(("t/b", "z", R.DONE, S.RELEASED, 1, 1, True))), took_s=1
    )
    assert {name[1] for name in samples(serving) if "copy_lag" in name[0]} == {"t/b"}


def test_topics_are_labels_only_where_asked_for_and_only_the_worst(clock):
    plain = collector(clock)
    plain.succeeded(Surveyed(figures=FLEET), took_s=1)
    assert not [name for name in samples(plain) if name[0].startswith("tierkeeper_topic_")]
    bounded = collector(clock, topics_max=1)
    bounded.succeeded(Surveyed(figures=FLEET), took_s=1)
    found = {k: v for k, v in samples(bounded).items() if k[0].startswith("tierkeeper_topic_copy")}
    assert found == {
        ("tierkeeper_topic_copy_lag_bytes", "persistent://t/a/y"): 30,
        ("tierkeeper_topic_copy_lag_ledgers", "persistent://t/a/x"): 1,
        ("tierkeeper_topic_copy_lag_oldest_seconds", "persistent://t/a/y"): 90,
    }


def test_names_with_odd_characters_survive(clock):
    serving = collector(clock, topics_max=5)
    odd = 'a"b\\c\nd{e}'
    serving.succeeded(
        Surveyed(figures=figures(("t/a", odd, R.FAILED, S.SEALED, 1, 1, False))), took_s=1
    )
    assert ("tierkeeper_topic_copy_lag_bytes", f"persistent://t/a/{odd}") in samples(serving)


DONE = WorkDone(
    copied_ledgers=3,
    copied_bytes=30,
    verified_ledgers=2,
    verified_bytes=20,
    published_ledgers=1,
    published_bytes=10,
    stored_bytes=25,
    failed_runs=4,
    died_runs=5,
)


def test_what_was_done_and_the_use_of_budgets_are_counters(clock):
    serving = collector(clock)
    budgets = {"upload_bytes_per_s": 100}
    serving.succeeded(Surveyed(figures=FLEET, done=DONE, budgets=budgets), took_s=1)
    found = samples(serving)
    expected = {
        ("tierkeeper_copied_ledgers_total",): 3,
        ("tierkeeper_copied_bytes_total",): 30,
        ("tierkeeper_verified_ledgers_total",): 2,
        ("tierkeeper_published_bytes_total",): 10,
        ("tierkeeper_released_ledgers_total",): 0,
        ("tierkeeper_failed_runs_total", "failed"): 4,
        ("tierkeeper_failed_runs_total", "died"): 5,
        ("tierkeeper_budget_used_bytes_total", "upload_bytes_per_s"): 25,
        ("tierkeeper_budget_used_bytes_total", "bookie_read_bytes_per_s"): 30,
        ("tierkeeper_budget_limit", "upload_bytes_per_s"): 100,
    }
    assert expected.items() <= found.items()
    assert ("tierkeeper_budget_limit", "bookie_read_bytes_per_s") not in found


def test_a_process_that_starts_again_tells_what_the_catalogue_told_before(clock):
    before, after = collector(clock), collector(clock)
    before.succeeded(Surveyed(figures=FLEET, done=DONE), took_s=1)
    after.succeeded(Surveyed(figures=FLEET, done=DONE), took_s=1)
    counted = {k: v for k, v in samples(before).items() if k[0].endswith("_total")}
    assert counted
    assert counted == {k: v for k, v in samples(after).items() if k[0].endswith("_total")}


def test_no_counter_falls_and_none_goes_while_nobody_can_tell(clock):
    serving = collector(clock)
    serving.succeeded(Surveyed(figures=FLEET, done=DONE), took_s=1)
    serving.succeeded(Surveyed(figures=FLEET, done=WorkDone(copied_ledgers=9)), took_s=1)
    found = samples(serving)
    assert found["tierkeeper_copied_ledgers_total",] == 9
    assert found["tierkeeper_copied_bytes_total",] == 30
    serving.succeeded(Surveyed(figures=FLEET), took_s=1)
    assert samples(serving)["tierkeeper_copied_bytes_total",] == 30


def test_where_no_catalogue_tells_there_is_no_counter_that_would_look_like_a_restart(clock):
    serving = collector(clock)
    serving.succeeded(Surveyed(figures=FLEET), took_s=1)
    told = {name[0] for name in samples(serving) if name[0].endswith("_total")}
    assert told == {"tierkeeper_surveys_total"}


def test_a_scrape_makes_no_figure_of_a_topic_anew(clock):
    class Asked(FiguresByTopic):
        times = 0

        def __len__(self):
            return 1

        def __iter__(self):
            raise AssertionError

        def __getitem__(self, name):
            raise AssertionError

        def largest(self, count, state=None):
            raise AssertionError

        def lagging(self):
            self.times += 1
            return FLEET.topics.lagging()

    asked = Asked()
    serving = collector(clock, topics_max=3)
    serving.succeeded(Surveyed(figures=replace(FLEET, topics=asked)), took_s=1)
    samples(serving)
    samples(serving)
    assert asked.times == 1
