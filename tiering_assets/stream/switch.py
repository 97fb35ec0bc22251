"""A topic's stream is opened, and ends. Each is one record that is created if there is none.

Owns: a stream begins with the ledger that its topic writes to: sealed ones go the way of whole
ledgers. It ends behind a segment that is done, where the next one would be assigned, so that no run
assigns one behind its end.
"""

from __future__ import annotations

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import StreamClosed, StreamOpened
from tiering_assets.resources.errors import ObjectExistsError, RefusedError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.offload_context import segmented_ledgers
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.stream.chain import Chain, read_stream

WHICH_MAX = 9_999


def open_stream(stack: Stack, ml_name: str, *, author: str) -> Stored[StreamOpened] | Chain:
    """Open a stream, or find the one that is open.

    Raises:
        RefusedError: there is no such topic, it is none that may be streamed, or it has no ledger.
    """
    read = stack.topics.read(ml_name)
    if read is None:
        raise RefusedError(f"{ml_name} has no managed ledger: nothing was ever written to it")
    topic, node = read
    refused = never_touched(ml_name, topic.properties) or _foreign(topic)
    if refused:
        raise RefusedError(f"{ml_name} is not streamed: {refused}")
    if not topic.ledgers:
        raise RefusedError(f"{ml_name} has no ledger yet. Write to it first")
    ml_czxid, last = node.stat.czxid, topic.ledgers[-1]
    found = read_stream(stack, ml_name, ml_czxid)
    if isinstance(found, Chain):
        return found
    which = 1 if found is None else keys.which_stream(found.record.stream) + 1
    if which > WHICH_MAX:
        raise RefusedError(f"{ml_name} had {WHICH_MAX} streams, and gets no more")
    stream = keys.stream_name(ml_czxid, which)
    record = StreamOpened(
        ml_name=ml_name,
        ml_czxid=ml_czxid,
        stream=stream,
        first_ledger_id=last.ledger_id,
        first_entry_id=0,
        begins="open-ledger",
        author=author,
        opened_at=stack.now(),
        writer=stack.writer,
    )
    return stack.book.create_or_read(keys.stream_opened(ml_name, stream), record)[0]


def close_stream(stack: Stack, chain: Chain, *, reason: str, author: str) -> Stored[StreamClosed]:
    """End a stream behind its newest segment.

    Raises:
        RefusedError: that is not done, or another run was faster with the next one.
    """
    newest = chain.newest
    if newest is not None and not newest.is_done:
        raise RefusedError(
            f"segment {newest.number} of {chain.ml_name} is assigned and neither offloaded nor "
            f"given up. Finish it first: tierkeeper stream cut"
        )
    record = StreamClosed(
        ml_name=chain.ml_name,
        stream=chain.stream,
        segments=chain.next_number - 1,
        reason=reason,
        author=author,
        closed_at=stack.now(),
        writer=stack.writer,
        previous=chain.tip,
    )
    key = keys.stream_link(chain.ml_name, chain.stream, chain.next_number)
    try:
        return stack.book.create(key, record)
    except ObjectExistsError:
        raise RefusedError(
            f"segment {chain.next_number} of {chain.ml_name} was assigned meanwhile: run again"
        ) from None


def _foreign(topic: ManagedLedger) -> str:
    """Why a topic is another tool's to stream; empty where it is not."""
    found = segmented_ledgers(topic)
    return f"its node lists segments of another tool, of ledgers {found[:5]}" if found else ""
