"""All that lies in the bucket and serves nobody, from one listing: what we, brokers and others
left.

Owns: the order of sweep.py, leftovers.py and foreign.py, so that the CLI and Dagster show and do
the same. Dry run is a mode of the same code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tiering_assets.clean.foreign import Foreign, find_foreign
from tiering_assets.clean.leftovers import BrokerLeaving, collect_leftovers, find_leftovers
from tiering_assets.clean.leftovers_rules import Collect
from tiering_assets.clean.orphans import Sweep
from tiering_assets.clean.removals import Removals, observe_removals
from tiering_assets.clean.sweep import Leaving, refuse_mass_delete, sweep
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.bucket_listing import Pair, list_bucket
from tiering_assets.look.topic.contexts import read_contexts
from tiering_assets.records.sweep_models import Swept


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """Our attempts, what brokers left, and objects of others, with what was decided.

    `removals` are the ledgers that this run saw to be gone from their topics.
    """

    attempts: Sequence[Leaving]
    leftovers: Sequence[BrokerLeaving]
    foreign: Sequence[Foreign]
    removals: Removals = field(default_factory=Removals)

    @property
    def going(self) -> list[Leaving | BrokerLeaving]:
        """Whatever may be deleted."""
        return [
            *(one for one in self.attempts if isinstance(one.decision, Sweep)),
            *(one for one in self.leftovers if isinstance(one.decision, Collect)),
        ]

    @property
    def done(self) -> Iterator[Swept]:
        """What was deleted."""
        both: list[Leaving | BrokerLeaving] = [*self.attempts, *self.leftovers]
        return (one.done for one in both if one.done is not None)

    @property
    def errors(self) -> list[str]:
        both: list[Leaving | BrokerLeaving] = [*self.attempts, *self.leftovers]
        errors = [one.error for one in both if one.error]
        return [*errors, self.removals.refused] if self.removals.refused else errors


def clean_up(stack: Stack, *, execute: bool, only: Collection[Pair] | None = None) -> CleanUp:
    """List and decide; with `execute` delete what may go, note what brokers have begun and what is
    gone. Of what may go no more than `only`, where a person said yes to exactly these attempts.

    Raises:
        RefusedError: metadata went backwards, everything is held, or too much would be deleted.
    """
    listing = list_bucket(stack)
    named = read_contexts(stack)
    ours = stack.book.pairs("attempts/")
    leftovers = find_leftovers(stack, listing, named, ours=ours)
    known = ours | {one.pair for one in leftovers}
    foreign = find_foreign(stack, listing, named, known=known)
    collects = sum(isinstance(one.decision, Collect) for one in leftovers)
    refuse_mass_delete(stack, collects, fleet=len(listing.pairs()))
    attempts = sweep(stack, execute=execute, listing=listing, only=only)
    if not execute:
        return CleanUp(attempts=attempts, leftovers=leftovers, foreign=foreign)
    return CleanUp(
        attempts=attempts,
        leftovers=collect_leftovers(stack, leftovers, only=only),
        foreign=foreign,
        removals=observe_removals(stack),
    )
