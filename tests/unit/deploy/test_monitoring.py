"""Alert rules and dashboard as shipped: every metric and label that they use is one we export.

Expressions are split by a tokenizer of our own; names that are no functions and no keywords of
PromQL are metrics. What is exported is read from a real exposition by Prometheus' own parser.
"""

import json
import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from tests.support.alert_rules import CASES, LOWERED, alerting, minutes_of, shipped, shortened
from tests.support.dashboard import SCHEMA, board, queries, variables
from tests.support.metrics_scene import TURNS
from tiering_assets.catalogue.facts.work_done import DONE, WorkDone
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.run_history import TOPIC_TAG
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted
from tiering_assets.explain.figures.objectives import FIGURES, ObjectiveLevel, decide_objectives
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.metrics.collector import FleetCollector, exposition, make_registry
from tiering_assets.metrics.surveyed import Surveyed
from tiering_assets.resources.settings import MetricsSettings, ObjectiveSettings
from tiering_assets.resources.settings_engines import DagsterSettings

ROOT = Path(__file__).parents[3]
ALERTS = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))
BOARD = json.loads((ROOT / "deploy/grafana/tierkeeper.json").read_text(encoding="utf-8"))
NOW = datetime(2026, 3, 1, tzinfo=UTC)

FUNCTIONS = {"absent", "deriv", "increase", "label_replace", "label_values", "max", "min"}
FUNCTIONS |= {"min_over_time", "rate", "sum", "topk"}
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
    found = Surveyed(
        figures=figures,
        findings=decide_objectives(figures, every),
        done=WorkDone(),
        budgets={"upload_bytes_per_s": 1},
    )
    collector.succeeded(found, took_s=1)
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
    assert fleet - shown == unseen


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


# ----- what `make metrics-check` proves of each rule, and that none is left out


def test_every_rule_has_a_case_of_promtool_a_turn_in_which_it_fires_and_one_in_which_it_clears():
    rules = {rule["alert"] for rule in ALERTING}
    fires = [name for turn in TURNS for name in turn.fires]
    clears = [name for turn in TURNS for name in turn.clears]
    assert set(CASES) == set(fires) == set(clears) == rules
    assert len(fires) == len(clears) == len(rules)
    for rule in rules:
        [fired] = [n for n, turn in enumerate(TURNS) if rule in turn.fires]
        [cleared] = [n for n, turn in enumerate(TURNS) if rule in turn.clears]
        assert fired < cleared


@pytest.mark.parametrize("rule", ALERTING, ids=lambda rule: rule["alert"])
def test_cases_of_promtool_say_each_time_and_use_what_the_rule_asks_for(rule):
    case = CASES[rule["alert"]]
    assert case.minutes == minutes_of(rule)
    asked = {m for name in parse(rule["expr"])[0] for m in RECORDED.get(name, {name})}
    given = {one.partition("{")[0] for one in (*case.true, *case.quiet)}
    assert asked <= given | {"tierkeeper_survey_success"}
    assert given <= set(EXPORTED)


def test_the_short_copy_differs_in_times_and_in_the_limits_that_are_named_alone():
    short = shortened(shipped())
    assert set(LOWERED) <= {rule["alert"] for rule in ALERTING}
    for ours, theirs in zip(alerting(shipped()), alerting(short), strict=True):
        same = {k: v for k, v in ours.items() if k not in {"for", "expr"}}
        assert {k: v for k, v in theirs.items() if k not in {"for", "expr"}} == same
        assert theirs["for"] == "5s"
        assert (theirs["expr"] == ours["expr"]) == (ours["alert"] not in LOWERED)


def test_a_limit_that_is_not_there_cannot_be_lowered():
    rules = shipped()
    [old] = [rule for rule in alerting(rules) if rule["alert"] == "TierkeeperFiguresOld"]
    old["expr"] = "tierkeeper_survey_age_seconds > 60"
    with pytest.raises(ValueError, match="TierkeeperFiguresOld has no limit '> 3600'"):
        shortened(rules)


# ----- the dashboard's form, lines, colours, tables and links


def test_the_board_has_the_form_that_grafana_reads():
    jsonschema.validate(BOARD, SCHEMA)
    assert board() == BOARD


@pytest.mark.parametrize(
    "harm",
    [
        lambda b: b["panels"][0].update(kind="stat"),
        lambda b: b["panels"][0]["fieldConfig"]["defaults"].update(unit="parsecs"),
        lambda b: b["panels"][0]["targets"].clear(),
        lambda b: b["links"][0].update(url="http://elsewhere/"),
        lambda b: b.pop("templating"),
    ],
)
def test_another_form_is_refused(harm):
    harmed = board()
    harm(harmed)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(harmed, SCHEMA)


def test_queries_and_variables_leave_no_variable_for_prometheus():
    assert not [one for one in queries(BOARD) if "$instance" in one.expression]
    assert {name for name, _metric, _label in variables(BOARD)} == {"instance", "namespace"}
    known = {one["name"] for one in BOARD["templating"]["list"]} | {"__all", "__data"}
    used = set(re.findall(r"\$\{?([a-z_]+)", json.dumps(BOARD)))
    assert used <= known


def panel_of(title):
    [found] = [panel for panel in BOARD["panels"] if panel["title"] == title]
    return found


@pytest.mark.parametrize(
    ("title", "figure"),
    [
        ("Copy lag by namespace", "copy_lag_bytes"),
        ("Oldest in copy lag", "copy_lag_age_s"),
        ("Oldest in delete lag", "delete_lag_age_s"),
    ],
)
def test_a_lag_has_the_line_of_its_objective(title, figure):
    assert figure in dict(FIGURES)
    panel = panel_of(title)
    lines = [t for t in panel["targets"] if "tierkeeper_objective_limit" in t["expr"]]
    assert [re.findall(r'objective="(\w+)"', line["expr"]) for line in lines] == [[figure]]
    assert lines[0]["legendFormat"] == "objective"
    [override] = panel["fieldConfig"]["overrides"]
    assert re.search(override["matcher"]["options"].strip("/"), "objective")
    look = {one["id"]: one["value"] for one in override["properties"]}
    assert look["color"]["fixedColor"] == "red"
    assert look["custom.stacking"] == {"mode": "none"}


def test_colours_change_where_objectives_do():
    def steps(title):
        panel = panel_of(title)
        return [
            (one["color"], one["value"])
            for one in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        ]

    warn = ObjectiveSettings().warn_at
    by_share = [("green", None), ("yellow", warn), ("red", 1)]
    assert steps("Share of each objective") == steps("Use of budgets") == by_share
    levels = [("green", None), ("yellow", ObjectiveLevel.WARN), ("red", ObjectiveLevel.ERROR)]
    assert steps("Objectives") == levels
    [much] = [rule for rule in ALERTING if rule["alert"] == "TierkeeperDisturbsMuch"]
    assert steps("Reloads of topics")[-1] == ("red", int(much["expr"].rpartition("> ")[2]))
    [old] = [rule for rule in ALERTING if rule["alert"] == "TierkeeperFiguresOld"]
    assert steps("Age of the figures")[-1] == ("red", int(old["expr"].rpartition("> ")[2]))


def test_tables_of_topics_are_filled_as_shipped_and_lead_to_runs_of_their_topic():
    assert MetricsSettings().topics_max > 0
    for title in ("Topics with most copy lag", "Topics with stuck ledgers"):
        panel = panel_of(title)
        [override] = panel["fieldConfig"]["overrides"]
        [[link]] = [one["value"] for one in override["properties"] if one["id"] == "links"]
        assert link["url"].startswith(f"${{dagster}}/runs?q[0]=tag:{TOPIC_TAG}=")
        [organized] = panel["transformations"]
        renamed = organized["options"]["renameByName"]
        label = re.findall(r'"(\w+)", "\$1", "topic"', panel["targets"][0]["expr"])
        assert [*renamed] == label
        assert f'fields["{renamed[label[0]]}"]' in link["url"]


def test_links_lead_to_dagster():
    paths = [link["url"].removeprefix("${dagster}") for link in BOARD["links"]]
    assert paths == [
        "/assets/${cluster}/tiering_backlog",
        "/runs",
        "/runs?q[0]=status:FAILURE",
    ]
    [cluster] = [one for one in BOARD["templating"]["list"] if one["name"] == "cluster"]
    assert cluster["query"] == DagsterSettings().cluster
    assert ClusterNames(cluster["query"]).tiering_backlog.path == [
        cluster["query"],
        "tiering_backlog",
    ]


def test_every_sum_of_what_was_done_has_its_counters():
    told = {name for name in EXPORTED if name.endswith("_total")}
    done = {f"tierkeeper_{name}_{unit}_total" for name in DONE for unit in ("ledgers", "bytes")}
    assert done <= told
    assert told - done == {
        "tierkeeper_budget_used_bytes_total",
        "tierkeeper_failed_runs_total",
        "tierkeeper_surveys_total",
    }
