"""What people do next about a reason: one table for the closed list and for a policy's rules. Pure.

Owns: every reason has a step, and one that only passes with time says so. A reason that covers
several cases has a step for each; the words in its detail tell which, and the first row that
applies is taken. `ledger why`, `topic backlog`, `topic offload-status` and `policy` print it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because
from tiering_assets.look.topic.publish_gate import STOP_SKIPPING


@dataclass(frozen=True, slots=True)
class NextStep:
    """`within` is found in the detail; empty, it is every detail. `text` may name {topic},
    {namespace} and {ledger}.
    """

    reason: BacklogReason
    text: str
    within: str = ""


_WAIT = "nothing to do"
_THRESHOLD = (
    "set one in tiering.toml (offloadSizeInMB or offloadTimeInMinutes), or let the broker offload, "
    "too: `pulsar-admin namespaces set-offload-threshold {namespace} --size 0`"
)
_BROKER_OFF = "`pulsar-admin namespaces set-offload-threshold {namespace} --size -1 --time -1`"
_LAG = (
    "`pulsar-admin namespaces set-offload-deletion-lag {namespace} --lag 40h` with ten times our lag, "
    "or publish.broker_may_release = true"
)
_SHOWN = "`tierkeeper policy show {topic}` names the level that says so"
_RETENTION = (
    "lower the offload threshold where the level says it, or raise what is kept: "
    "`pulsar-admin namespaces set-retention {namespace} --time 7d --size -1`"
)
R = BacklogReason
STEPS: Final = (
    NextStep(R.OPEN, f"{_WAIT}: it is closed when its topic rolls over"),
    NextStep(
        R.DAMAGED, "`tierkeeper scrub run --topic {topic} --execute` puts a sound copy in its place"
    ),
    NextStep(
        R.UNSEALED,
        "its broker closes it at the topic's next load; "
        "`pulsar-admin topics stats {topic}` has a broker load it",
    ),
    NextStep(R.BELOW_THRESHOLD, f"{_WAIT} until its topic grows or ages; {_SHOWN}"),
    NextStep(R.EXCLUDED, _THRESHOLD, "no threshold is set"),
    NextStep(
        R.EXCLUDED,
        "set policy.terminated_last_ledger = true to have it selected",
        "last ledger of a terminated topic",
    ),
    NextStep(R.EXCLUDED, "set policy.zero_length_ledgers = true", "zero length"),
    NextStep(R.EXCLUDED, "set policy.unloaded_topics = true", "is not loaded"),
    NextStep(R.EXCLUDED, f"{_WAIT}: brokers drop it when they next load its topic", "no entries"),
    NextStep(R.EXCLUDED, f"{_WAIT}: tierkeeper always leaves it alone", "never touched"),
    NextStep(
        R.EXCLUDED,
        "`tierkeeper ledger show {ledger}` names the topic that it belongs to",
        "another managed ledger",
    ),
    NextStep(R.EXCLUDED, f"stop it: {_BROKER_OFF}, or set publish.coexist = true", "coexist"),
    NextStep(R.EXCLUDED, "`tierkeeper policy show {topic}` prints the policy and its levels"),
    NextStep(
        R.DISABLED,
        "`tierkeeper tiering list` names who disabled it; `tierkeeper tiering resume`, or "
        "tiering.toml where that says so",
    ),
    NextStep(
        R.PAUSED,
        "`tierkeeper tiering list` names who paused it; `tierkeeper tiering resume`, or "
        "tiering.toml where that says so",
    ),
    NextStep(
        R.NOT_ADMITTED, "make it readable: `tierkeeper policy check` says more", "policy cannot"
    ),
    NextStep(R.NOT_ADMITTED, "`tierkeeper ledger release {ledger} --execute`", "due for release"),
    NextStep(
        R.NOT_ADMITTED,
        "`tierkeeper ledger offload {ledger} --execute`; by itself: `tierkeeper auto status` says what is "
        "missing",
    ),
    NextStep(R.OVER_BUDGET, "wait an hour, or raise the budget that it names under [disturb]"),
    NextStep(
        R.COPYING, f"{_WAIT}; a claim whose run died runs out by itself (offload.claim_ttl_s)"
    ),
    NextStep(
        R.FAILED,
        "lift what the error says, then `tierkeeper ledger offload {ledger} --execute`; "
        "`tierkeeper doctor` looks for causes",
    ),
    NextStep(R.QUARANTINED, "`tierkeeper ledger offload {ledger} --execute` makes a new copy"),
    NextStep(
        R.CANNOT_READ,
        "compare `tierkeeper config show` with `tierkeeper policy show {topic}`; "
        "`tierkeeper doctor` prints the line that sets the policy right",
    ),
    NextStep(R.MAY_RELEASE_FIRST, _LAG),
    NextStep(
        R.WAITING_TO_DISTURB,
        f"{_WAIT}; `tierkeeper ledger offload {{ledger}} --execute` publishes it now, which reloads the topic",
    ),
    NextStep(
        R.NODE_TOO_LARGE,
        "let ledgers of the topic go first: `tierkeeper ledger release --topic {topic} --execute`, or a "
        "shorter retention",
    ),
    NextStep(
        R.PUBLISHED_BY_BROKER,
        "`tierkeeper ledger show {ledger}` names the copy, and `tierkeeper object verify` looks "
        "for damage in it",
    ),
    NextStep(
        R.UNCONFIRMED,
        "`tierkeeper ledger release {ledger} --execute` finishes it",
        "the bookie copy is there",
    ),
    NextStep(R.UNCONFIRMED, "`tierkeeper ledger offload {ledger} --execute` confirms it"),
    NextStep(R.IN_LAG, f"{_WAIT} until then (release.deletion_lag_s)"),
    NextStep(R.HELD, "`tierkeeper hold list` says by whom and why; `tierkeeper hold lift`"),
    NextStep(R.CAPPED, "wait for the next run, or raise the cap that it names under [release]"),
    NextStep(
        R.UNSAFE,
        "restore its metadata node or its bookies from a backup; do not touch the topic",
        "BookKeeper has",
    ),
    NextStep(
        R.UNSAFE, "`tierkeeper ledger show {ledger}` has all the evidence and what would help"
    ),
    NextStep(R.EXPIRED, "`tierkeeper expired-copy list` shows copies that may go"),
    NextStep(R.DONE, f"{_WAIT}; `tierkeeper ledger verify {{ledger}}` reads the object again"),
)
OF_RULES: Final[Mapping[str, str]] = {
    "offload_time": _RETENTION,
    "offload_size": _RETENTION,
    "negative": f"set it to what it may be; {_SHOWN}",
    "broker_offloads": f"stop it: {_BROKER_OFF}, or set publish.coexist = true",
    "broker_releases": _LAG,
    "skips_unreadable": f"`{STOP_SKIPPING}`",
    "no_retention": (
        "where acknowledged data is wanted: "
        "`pulsar-admin namespaces set-retention {namespace} --time 7d --size -1`"
    ),
    "lag_past_retention": "shorten release.deletion_lag_s, or keep data longer, if bookies need room",
    "ttl": "raise it: `pulsar-admin namespaces set-message-ttl {namespace} --messageTTL 0` is none",
    "unreadable": "`tierkeeper doctor` asks what the policies are read from",
}


def next_step(because: Because, *, topic: str | None = None, ledger_id: int | None = None) -> str:
    """The step for one ledger, or for all of a reason where neither is told."""
    rule = because.detail.partition(":")[0]
    if because.reason is R.EXCLUDED and rule in OF_RULES:
        return step_of_rule(rule, topic=topic)
    step = next(
        one for one in STEPS if one.reason is because.reason and one.within in because.detail
    )
    return _filled(step.text, topic, ledger_id)


def step_of_rule(rule: str, *, topic: str | None = None) -> str:
    """What is done about a finding of a policy."""
    return _filled(OF_RULES[rule], topic, None)


def _filled(text: str, topic: str | None, ledger_id: int | None) -> str:
    name = "TOPIC" if topic is None else topic.removeprefix("persistent://")
    return text.format(
        topic=name,
        namespace="NAMESPACE" if topic is None else "/".join(name.split("/")[:2]),
        ledger="LEDGER" if ledger_id is None else ledger_id,
    )
