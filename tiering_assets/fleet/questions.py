"""What is asked of the catalogue about a fleet or a part of it, as SQL. Pure.

Owns: which ledgers are settled, so that nobody but their rows need be asked about them: they are
counted, by topic. All others are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tiering_assets.resources.sql import sql_text, sql_time

EVERYTHING: Final = "true"
SIZES: Final = "topic, ledger_id, bytes, closed_at"
"""What thresholds are judged by."""
_RECORDED: Final = (
    "(published_at is not null and coalesce(withdrawn_at < published_at, true))"  # nobody undid it
)
_OFFLOADED: Final = f"coalesce(listed_as in ('offloaded', 'marked'), {_RECORDED})"
_UNPUBLISHED: Final = "'sealed', 'copying', 'copied', 'verified', 'quarantined', 'unsafe'"
_FACTS: Final = (
    "certified_at is not null as certified, quarantined_at is not null as quarantined, "
    f"damaged_at is not null as damaged, {_RECORDED} as recorded, {_OFFLOADED} as offloaded"
)
OF_ONE: Final = (
    "topic, ledger_id, state, entries, bytes, closed_at, listed_as, context_uid, uid, bookie_copy, "
    f"attempts, coalesce(attempted_at, certified_at) as attempted_at, published_at, {_FACTS}"
)


PECULIAR: Final = (
    "select topic, left_alone from topics where czxid is not null "
    "and (terminated or left_alone is not null)"
)
"""Topics of which a row says something that its ledgers' rows do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetQuestion:
    """Some ledgers, and what is known beside their rows. `some` is a condition.

    What was published before `published_before` is out of its lag. `terminated` topics write to no
    ledger that they list as open, and those `left_alone` have none of ours.
    """

    published_before: datetime
    terminated: frozenset[str] = frozenset()
    left_alone: frozenset[str] = frozenset()
    some: str = EVERYTHING

    @property
    def listed(self) -> str:
        """Condition for ledgers that topics list."""
        return f"state <> 'expired' and not {of_topics(self.left_alone)} and {self.some}"

    @property
    def unsettled(self) -> str:
        """What no row alone can say: why it is not copied, or which cap its release waits for."""
        due = f"certified_at is not null and published_at <= {sql_time(self.published_before)}"
        return (
            f"(state in ({_UNPUBLISHED}, 'releasing') or held is not null "
            f"or (state = 'published' and quarantined_at is null and coalesce({due}, false)) "
            f"or (state = 'open' and {of_topics(self.terminated)}))"
        )


def of_topics(topics: Iterable[str]) -> str:
    """Rows of these managed ledgers."""
    named = ", ".join(map(sql_text, topics))
    return f"topic in ({named})" if named else "false"


def of_ledgers(ledger_ids: Iterable[int]) -> str:
    """Rows of these ledgers."""
    named = ", ".join(map(str, sorted(ledger_ids)))
    return f"ledger_id in ({named})" if named else "false"


def settled_counts(asked: FleetQuestion, *, by_namespace: bool = False) -> str:
    """Ledgers that are alike, counted by topic; or by namespace, with one of its topics.

    `closed_at` is when the first of them was closed, `published_at` when the first was published.
    """
    alike = "state, certified, quarantined, damaged, recorded, offloaded, ours"
    facts = (
        f"select topic, namespace, state, bytes, closed_at, published_at, {_FACTS}, "  # noqa: S608
        "coalesce(offloaded_by = 'tierkeeper', false) as ours from ledgers "
        f"where {asked.listed} and not {asked.unsettled}"
    )
    counts = (
        "count(*) as ledgers, sum(coalesce(bytes, 0)) as bytes, "
        "min(closed_at) as closed_at, min(published_at) as published_at"
    )
    by, topic = "topic", "topic"
    if by_namespace:  # of a name that is no topic's it is not known
        by, topic = "coalesce(namespace, topic)", "min(topic) as topic"
    return f"select {topic}, {alike}, {counts} from ({facts}) group by {by}, {alike}"  # noqa: S608


def topics_counted(asked: FleetQuestion) -> str:
    """How many topics have ledgers."""
    return f"select count(distinct topic) as topics from ledgers where {asked.listed}"  # noqa: S608


def largest_topics(asked: FleetQuestion, *, most: int, state: str | None = None) -> str:
    """So many topics with most bytes, or with most in ledgers that rows have in this state."""
    some = asked.listed if state is None else f"{asked.listed} and state = {sql_text(state)}"
    return (
        "select topic, sum(coalesce(bytes, 0)) as size from ledgers "  # noqa: S608
        f"where {some} group by topic order by size desc, topic limit {most}"
    )


def first_unsettled(asked: FleetQuestion) -> str:
    """The least id of them; null without any."""
    return (
        "select min(ledger_id) as ledger_id from ledgers "  # noqa: S608
        f"where {asked.listed} and {asked.unsettled}"
    )


def ledgers_told(asked: FleetQuestion, columns: str, *, unsettled_topics: bool = False) -> str:
    """Unsettled and closed ledgers with a column `unsettled`, in any order.

    Of each of the `unsettled_topics` from its first unsettled one on: a join takes four times the
    memory of the rows that come of it.
    """
    counts = f"({asked.unsettled} or closed_at is not null)"  # thresholds count no open one
    listed = (
        f"select *, {asked.unsettled} as unsettled from ledgers "  # noqa: S608
        f"where {asked.listed} and {counts}"
    )
    if not unsettled_topics:
        return f"select {columns}, unsettled from ({listed})"  # noqa: S608
    firsts = (
        "select topic as of, min(ledger_id) as first_id from listed where unsettled group by topic"
    )
    return (
        f"with listed as ({listed}), firsts as ({firsts}) "  # noqa: S608
        f"select {columns}, unsettled from listed join firsts on topic = of and ledger_id >= first_id"
    )


def listed_ledgers(asked: FleetQuestion, states: Iterable[str]) -> str:
    """Ledgers that may be in one of these states (in any, without), by topic and id."""
    return (
        f"select {OF_ONE}, {asked.unsettled} as unsettled from ledgers "  # noqa: S608
        f"where {asked.listed} and {_may_be(asked, states)} order by topic, ledger_id"
    )


def last_topic_of(asked: FleetQuestion, states: Iterable[str], *, most: int) -> str:
    """The topic up to which there are so many ledgers in these states. No row where all have fewer.

    Of what is not settled only a look tells its state, so it is none of those that are sure. To
    sort ten million rows for the first of them takes a gigabyte; to count them by topic does not.
    """
    states = [*states]
    sure = f"case when {asked.unsettled} then 0 else 1 end" if states else "1"
    counts = (
        f"select topic, sum({sure}) as n from ledgers "  # noqa: S608
        f"where {asked.listed} and {_may_be(asked, states)} group by topic"
    )
    summed = f"select topic, sum(n) over (order by topic) as n from ({counts})"  # noqa: S608
    return f"select min(topic) as topic from ({summed}) where n >= {most}"  # noqa: S608


def _may_be(asked: FleetQuestion, states: Iterable[str]) -> str:
    wanted = ", ".join(map(sql_text, states))
    return f"({asked.unsettled} or state in ({wanted}))" if wanted else EVERYTHING


def topic_counts(asked: FleetQuestion, *, most: int | None = None) -> str:
    """Topics that are there, in name order, with what `topic list` counts of their ledgers."""
    limit = "" if most is None else f" limit {most}"
    counts = ", ".join(
        f"sum(case when {which} then 1 else 0 end) as {name}, "
        f"sum(case when {which} then coalesce(bytes, 0) else 0 end) as {name}_bytes"
        for name, which in (
            ("every", "true"),
            ("sealed", "not open"),
            ("ours", "not open and offloaded and certified"),
            ("theirs", "not open and offloaded and not certified"),
            ("bookies", "not open and not offloaded"),
        )
    )
    there = (
        "select topic, why from topics where czxid is not null and left_alone is null "  # noqa: S608
        f"and {asked.some} order by topic{limit}"
    )
    facts = (
        f"select topic, {_FACTS}, state = 'open' as open, "  # noqa: S608
        "case when state = 'open' then 0 else bytes end as bytes from ledgers "
        f"where {asked.listed}"
    )
    counted = f"select topic, {counts} from ({facts}) group by topic"  # noqa: S608
    return (
        f"select t.topic, t.why, c.* exclude (topic) from ({there}) t "  # noqa: S608
        f"left join ({counted}) c on t.topic = c.topic order by t.topic"
    )
