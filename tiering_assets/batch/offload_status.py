"""How far the offload of topics is, read now: lists from the metadata store, reasons from backlog.

Reads only and loads no topic; a topic's own policy level is asked, as for any topic that is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tiering_assets.batch.offload_status_rules import TopicStatus, decide_status
from tiering_assets.explain.backlog import explain_backlog
from tiering_assets.explain.reasons.backlog_reason import Because
from tiering_assets.ground.stack import Stack


def offload_status(stack: Stack, ml_names: Sequence[str]) -> Iterator[tuple[str, TopicStatus]]:
    """(managed ledger, status) of each topic that is still there.

    The list is read after the reasons: a ledger that was closed in between has none and is left
    out.
    """
    reasons: dict[str, dict[int, Because]] = defaultdict(dict)
    for one in explain_backlog(stack, ml_names, ask_topics=True, loads_nothing=True):
        reasons[one.view.ml_name][one.view.ledger_id] = one.because
    for ml_name in ml_names:
        found = stack.topics.read(ml_name)
        if found is not None:
            yield ml_name, decide_status(found[0].ledgers, reasons[ml_name])
