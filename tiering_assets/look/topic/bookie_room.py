"""Are there bookies enough to load a topic again? A loaded topic whose bookies are short still
serves.

Owns: a broker that loads a topic opens a data ledger, and its cursors open ledgers of their own;
BookKeeper refuses each unless so many bookies are writable as its ensemble is large. Reads go on
without, so a reload that cannot end is the one thing that takes such a topic from its readers. What
decides is the placement in force at every live broker, the strictest of them; one that we cannot
compute is named and makes the topic wait. Source: Pulsar `BrokerService.getManagedLedgerConfig`
(cursor ledgers take managedLedgerDefaultEnsembleSize, whatever a persistence policy says) and
`BookKeeperClientFactoryImpl`, 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tiering_assets.ground.reasons import Reason, Wait

ENSEMBLE_SETTING = "managedLedgerDefaultEnsembleSize"
# Placements that need more than a number of writable bookies, where they are switched on.
_OTHER_PLACEMENTS = (
    "bookkeeperClientRegionawarePolicyEnabled",
    "bookkeeperClientEnforceMinNumRacksPerWriteQuorum",
    "bookkeeperClientIsolationGroups",
    "bookkeeperClientSecondaryIsolationGroups",
    "strictBookieAffinityEnabled",
)
_POLICY_CLASSES = ("ensemblePlacementPolicyClassName", "ensemblePlacementPolicy")
_COMPUTED_CLASSES = (
    "org.apache.bookkeeper.client.RackawareEnsemblePlacementPolicy",
    "org.apache.bookkeeper.client.DefaultEnsemblePlacementPolicy",
)
_OFF = ("", "false", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What brokers ask of bookies for any topic. `unknown` says why that cannot be computed."""

    ensemble: int
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieSight:
    """Bookies as registered now, and what loading one topic takes.

    `data_ensemble` is that of the policy in force, None where none sets one. `cookies` are all
    bookies that ever started here. `silent` says why no broker that may own the topic would
    unload it and load it again.
    """

    writable: tuple[str, ...]
    readonly: tuple[str, ...]
    cookies: tuple[str, ...]
    placement: Placement
    data_ensemble: int | None = None
    affinity: str | None = None
    silent: str | None = None

    @property
    def away(self) -> tuple[str, ...]:
        """Bookies that have started here once and are not registered."""
        return tuple(sorted({*self.cookies} - {*self.writable, *self.readonly}))


def placement_of(configs: Mapping[str, Mapping[str, str]]) -> Placement:
    """The strictest placement among brokers' runtime configurations, by `host:port`."""
    unknown: list[str] = []
    ensemble = 0
    for broker, config in sorted(configs.items()):
        said = config.get(ENSEMBLE_SETTING, "").strip()
        if said.isascii() and said.isdecimal():
            ensemble = max(ensemble, int(said))
        else:
            unknown.append(f"{broker} does not tell its {ENSEMBLE_SETTING}")
        unknown += [f"{broker} has {found}" for found in _not_computed(config)]
    return Placement(ensemble=ensemble, unknown=tuple(unknown))


def _not_computed(config: Mapping[str, str]) -> Iterable[str]:
    for name in _OTHER_PLACEMENTS:
        value = config.get(name, "").strip()
        if value.lower() not in _OFF:
            yield f"{name}={value}"
    for name, value in config.items():
        if name.endswith(_POLICY_CLASSES) and value.strip() not in ("", *_COMPUTED_CLASSES):
            yield f"{name}={value}"


def why_bookies_short(seen: BookieSight, *, enough: int) -> Wait | None:
    """Why the topic must not be reloaded now; None when it can be loaded again.

    `enough` is a person's word: so many writable bookies do where we cannot compute the placement,
    0 for nobody's word.
    """
    if seen.silent is not None:
        return Wait(Reason.LEFT_ALONE, f"the topic cannot be reloaded: {seen.silent}")
    unknown = (*seen.placement.unknown, *([seen.affinity] if seen.affinity else ()))
    if unknown and not enough:
        return Wait(
            Reason.BOOKIES_SHORT,
            f"the bookies that a reload needs cannot be computed: {'; '.join(unknown)}. Set "
            f"disturb.bookies_enough to the number of writable bookies that do for every topic",
        )
    data = seen.data_ensemble or seen.placement.ensemble
    needed = max(data, seen.placement.ensemble, enough if unknown else 0)
    if len(seen.writable) >= needed:
        return None
    return Wait(Reason.BOOKIES_SHORT, _shortage_text(seen, data, needed))


def _shortage_text(seen: BookieSight, data: int, needed: int) -> str:
    there = f"{len(seen.writable)} writable bookies ({', '.join(seen.writable) or 'none'})"
    missing = [
        f"{what}: {', '.join(names)}"
        for what, names in (("read-only", seen.readonly), ("not there", seen.away))
        if names
    ]
    return (
        f"{there}, a reload needs {needed}: data ledgers have an ensemble of {data}, cursor ledgers "
        f"of {seen.placement.ensemble}. {'; '.join(missing) or 'No other bookie is known'}. The "
        f"topic stays loaded and readable; start bookies, and the next run goes on"
    )
