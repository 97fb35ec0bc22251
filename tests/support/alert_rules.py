"""The alert rules as shipped: how promtool proves each, and the copy that a short check can wait
for.

Owns: what makes each rule true, by name, and how long that must last. A rule without a case, or
without a condition of the scene (metrics_scene.py), fails a unit test.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ROOT / "deploy/prometheus/alerts.yml"
SHORT: Final = "5s"
LOWERED: Final[Mapping[str, tuple[str, str]]] = {
    "TierkeeperFiguresOld": ("> 3600", "> 10"),
    "TierkeeperDisturbsMuch": ("> 1000", "> 0"),
}
"""Limits that no short check can reach. promtool proves them as they are shipped."""
_DAY: Final = 24 * 60
_MINUTES: Final = {"m": 1, "h": 60}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A rule fires once `true` has lasted for `minutes`; with `quiet` it is silent after a day.

    Both are series by selector, in promtool's notation, a value a minute. `pending_at` is the
    minute from which the rule's expression holds.
    """

    minutes: int
    true: Mapping[str, str]
    quiet: Mapping[str, str]
    pending_at: int = 0


_GOOD: Final = {"tierkeeper_survey_success": "1x1500"}
_LAGS: Final = {
    'tierkeeper_copy_lag_bytes{namespace="t/a"}': "5x1500",
    'tierkeeper_copy_lag_bytes{namespace="t/b"}': "0x1500",
    'tierkeeper_copy_lag_oldest_seconds{namespace="t/b"}': "0x1500",
}
_OLDEST: Final = 'tierkeeper_copy_lag_oldest_seconds{namespace="t/a"}'
CASES: Final[Mapping[str, Case]] = {
    "TierkeeperDown": Case(minutes=5, true={}, quiet={"tierkeeper_survey_success": "0x1500"}),
    "TierkeeperSurveyFailing": Case(
        minutes=15, true={"tierkeeper_survey_success": "0x1500"}, quiet=_GOOD
    ),
    "TierkeeperFiguresOld": Case(
        minutes=5,
        true=_GOOD | {"tierkeeper_survey_age_seconds": "3601x1500"},
        quiet=_GOOD | {"tierkeeper_survey_age_seconds": "3600x1500"},
    ),
    "TierkeeperObjectiveNear": Case(
        minutes=15,
        true=_GOOD | {'tierkeeper_objective_level{objective="stuck"}': "1x1500"},
        quiet=_GOOD
        | {
            'tierkeeper_objective_level{objective="stuck"}': "0x1500",
            'tierkeeper_objective_level{objective="copy_lag_bytes"}': "2x1500",
        },
    ),
    "TierkeeperObjectiveMissed": Case(
        minutes=15,
        true=_GOOD | {'tierkeeper_objective_level{objective="stuck"}': "2x1500"},
        quiet=_GOOD | {'tierkeeper_objective_level{objective="stuck"}': "1x1500"},
    ),
    "TierkeeperCopyLagGrows": Case(
        minutes=60,
        true=_GOOD | _LAGS | {_OLDEST: "0+60x1500"},
        # Each ledger is copied before the next one is twice as old: a saw.
        quiet=_GOOD | _LAGS | {_OLDEST: " ".join(["0+60x29"] * 50)},
        pending_at=1,  # of one sample there is no slope
    ),
    "TierkeeperDataUnsafe": Case(
        minutes=5,
        true=_GOOD | {'tierkeeper_ledgers{reason="unsafe"}': "1x1500"},
        quiet=_GOOD
        | {
            'tierkeeper_ledgers{reason="unsafe"}': "0x1500",
            'tierkeeper_ledgers{reason="failed"}': "9x1500",
        },
    ),
    "TierkeeperQuarantined": Case(
        minutes=60,
        true=_GOOD | {'tierkeeper_ledgers{reason="quarantined"}': "1x1500"},
        # The next run made a new copy within the hour.
        quiet=_GOOD | {'tierkeeper_ledgers{reason="quarantined"}': "1x58 0x1441"},
    ),
    "TierkeeperDisturbsMuch": Case(
        minutes=30,
        true=_GOOD | {"tierkeeper_disturbances_last_hour": "1001x1500"},
        quiet=_GOOD | {"tierkeeper_disturbances_last_hour": "1000x1500"},
    ),
}


def shipped() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    return found


def alerting(rules: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for group in rules["groups"]:
        yield from (rule for rule in group["rules"] if "alert" in rule)


def minutes_of(rule: Mapping[str, Any]) -> int:
    """Its `for`."""
    said: str = rule["for"]
    return int(said[:-1]) * _MINUTES[said[-1]]


def shortened(rules: Mapping[str, Any]) -> dict[str, Any]:
    """A copy whose every alert waits for 5 s, with the limits of LOWERED."""
    short = copy.deepcopy(dict(rules))
    for rule in alerting(short):
        rule["for"] = SHORT
        if rule["alert"] in LOWERED:
            shipped_limit, lower = LOWERED[rule["alert"]]
            if rule["expr"].count(shipped_limit) != 1:
                raise ValueError(f"{rule['alert']} has no limit {shipped_limit!r} to be lowered")
            rule["expr"] = rule["expr"].replace(shipped_limit, lower)
    return short


def promtool_tests(
    rules_file: str, rules: Mapping[str, Any], *, of_time: str | None = None
) -> dict[str, Any]:
    """What `promtool test rules` reads: each rule silent a minute before its time, and then not.

    The test of one rule's time alone, where that is named.
    """
    tests = []
    for rule in alerting(rules):
        name, case = rule["alert"], CASES[rule["alert"]]
        fires_at = case.pending_at + case.minutes
        told = [_at(rule, fires_at - 1, "pending"), _at(rule, fires_at, "firing")]
        if of_time in (None, name):
            tests.append(_test(f"{name} fires after {case.minutes} minutes", case.true, told))
        if of_time is None:
            tests.append(_test(f"{name} is silent", case.quiet, [_at(rule, _DAY, None)]))
    return {
        "rule_files": [rules_file],
        "evaluation_interval": "1m",
        "group_eval_order": ["tierkeeper-recorded", "tierkeeper"],
        "tests": tests,
    }


def _test(name: str, series: Mapping[str, str], told: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": told,
    }


def _at(rule: Mapping[str, Any], minute: int, state: str | None) -> dict[str, Any]:
    """What Prometheus says of this alert in that minute; None is nothing at all."""
    samples = [] if state is None else [{"labels": f'{{alertstate="{state}"}}', "value": 1}]
    return {
        "expr": f'count by (alertstate) (ALERTS{{alertname="{rule["alert"]}"}})',
        "eval_time": f"{minute}m",
        "exp_samples": samples,
    }
