"""Alert rules and dashboard as shipped: every metric and label that they use is one we export.

Expressions are split by a tokenizer of our own; names that are no functions and no keywords of
PromQL are metrics. What is exported is read from a real exposition by Prometheus' own parser.
"""

import json
import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted
from tiering_assets.explain.figures.objectives import FIGURES, decide_objectives
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.metrics.collector import FleetCollector, exposition, make_registry
from tiering_assets.resources.settings import ObjectiveSettings

ROOT = Path(__file__).parents[3]
ALERTS = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))
BOARD = json.loads((ROOT / "deploy/grafana/tierkeeper.json").read_text(encoding="utf-8"))
NOW = datetime(2026, 3, 1, tzinfo=UTC)

FUNCTIONS = {"absent", "deriv", "increase", "label_values", "max", "min", "min_over_time", "sum"}
FUNCTIONS |= {"topk"}
KEYWORDS = {"and", "or", "unless", "by", "without", "on", "ignoring"}
ADDED_BY_PROMETHEUS = {"instance", "job"}
TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<range>\[\d+[smhd]\])
    | (?P<number>\d+(?:\.\d+)?) | (?P<name>[A-Za-z_][A-Za-z0-9_:]*)
    | (?P<op>=~|!~|!=|==|>=|<=|[(){},=<>+*/-])""",
    re.VERBOSE,
)
DURATION = re.compile(r"\d+[smhd]")


def tokens(expression):
    place = 0
    while place < len(expression):
        found = TOKEN.match(expression, place)
        assert found, f"no token of PromQL at {expression[place:]!r}"
        place = found.end()
        if found.lastgroup != "space":
            yield found.lastgroup, found.group()


def parse(expression):
    """(metrics, labels) of an expression; brackets must match and functions be called."""
    metrics, labels, open_brackets = set(), set(), []
    found = [*tokens(expression), ("end", "")]
    grouping = False
    for (kind, text), (_next_kind, following) in pairwise(found):
        if text in "({" and kind == "op":
            open_brackets.append("grouping" if grouping else text)
            grouping = False
        elif text in ")}" and kind == "op":
            assert open_brackets, f"{expression}: {text} closes nothing"
            assert (open_brackets.pop() == "{") == (text == "}"), expression
        elif kind == "name" and text in KEYWORDS:
            grouping = text in {"by", "without", "on", "ignoring"}
        elif kind == "name" and open_brackets and open_brackets[-1] in {"{", "grouping"}:
            labels.add(text)
        elif kind == "name" and text in FUNCTIONS and following in {"(", "by", "without"}:
            pass
        elif kind == "name" and "label_values" in expression and following == ")":
            labels.add(text)
        elif kind == "name":
            metrics.add(text)
    assert not open_brackets, f"{expression}: brackets stay open"
    assert metrics, f"{expression}: uses no metric"
    return metrics, labels


def exported():
    """Label names of every sample that can be exported, by its name."""
    figures = count_figures(
        [
            Counted(
                topic="persistent://t/ns/orders",
                namespace="t/ns",
                reason=BacklogReason.FAILED,
                state=state,
                bytes=1,
                closed_at=NOW,
                due_at=NOW,
                certified=False,
            )
            for state in (LedgerState.SEALED, LedgerState.RELEASED)
        ],
        disturbances_last_hour=0,
        now=NOW,
    )
    every = ObjectiveSettings(**{f"{figure}_max": 1 for figure, _value in FIGURES})
    collector = FleetCollector(topics_max=3, clock=NOW.timestamp)
    collector.succeeded(figures, decide_objectives(figures, every), took_s=1)
    families = text_string_to_metric_families(exposition(make_registry(collector)))
    return {s.name: set(s.labels) for family in families for s in family.samples}


EXPORTED = exported()
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
ALERTING = [rule for rule in RULES if "alert" in rule]
RECORDED = {rule["record"]: parse(rule["expr"])[0] for rule in RULES if "record" in rule}
EXPRESSIONS = [
    *(rule["expr"] for rule in RULES),
    *(target["expr"] for panel in BOARD["panels"] for target in panel["targets"]),
    *(v["query"]["query"] for v in BOARD["templating"]["list"] if v["type"] == "query"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_and_label_that_is_asked_for_is_exported(expression):
    plain = expression.replace("$instance", "x").replace("$namespace", "x")
    metrics, labels = parse(plain)
    assert metrics <= {*EXPORTED, *RECORDED}
    known = set(ADDED_BY_PROMETHEUS)
    for metric in metrics:
        known |= EXPORTED.get(metric, set())
    assert labels <= known


@pytest.mark.parametrize("wrong", ["sum(tierkeeper_x", "tierkeeper_x}", "5 > 3", "a ~ b"])
def test_the_tokenizer_takes_no_nonsense(wrong):
    with pytest.raises(AssertionError):
        parse(wrong)


def test_reasons_in_rules_and_panels_exist():
    used = {r for e in EXPRESSIONS for r in re.findall(r'reason!?="([^"]+)"', e)}
    assert used
    assert used <= {reason.value for reason in BacklogReason}


def test_every_figure_and_whatever_can_go_wrong_with_them_is_on_the_dashboard():
    shown = {m for e in EXPRESSIONS for m in parse(e.replace("$", ""))[0]}
    fleet = {name for name in EXPORTED if not name.startswith("tierkeeper_topic_")}
    unseen = {"tierkeeper_build_info", "tierkeeper_survey_timestamp_seconds", "tierkeeper_topics"}
    unseen |= {"tierkeeper_copy_lag_ledgers", "tierkeeper_delete_lag_ledgers"}
    assert fleet - shown == unseen | {"tierkeeper_objective_limit"}


@pytest.mark.parametrize("rule", ALERTING, ids=lambda rule: rule["alert"])
def test_every_alert_says_how_bad_since_when_and_what_to_do(rule):
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert DURATION.fullmatch(rule["for"])
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    for text in rule["annotations"].values():
        assert len(text) > 10
        assert text.count("{{") == text.count("}}")
    used = {label for name in parse(rule["expr"])[0] for label in EXPORTED.get(name, set())}
    for label in re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())):
        assert label in used | ADDED_BY_PROMETHEUS


def test_commands_and_pages_in_runbooks_exist():
    said = " ".join(rule["annotations"]["runbook"] for rule in ALERTING)
    pages = set(re.findall(r"docs/\w+\.md", said))
    assert {page for page in pages if not (ROOT / page).exists()} == set()
    commands = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for words in re.findall(r"`(tierkeeper [a-z]+(?: [a-z]+)?)", said):
        assert f"## {words}\n" in commands


def test_names_are_unique_and_the_board_is_laid_out_without_overlaps():
    assert len({rule["alert"] for rule in ALERTING}) == len(ALERTING)
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in BOARD["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert {x for x, _y in cells} == set(range(24))
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


@pytest.mark.parametrize("name", sorted(EXPORTED))
def test_the_page_explains_every_metric(name):
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    assert f"`{name}" in page or name.startswith("tierkeeper_topic_")
