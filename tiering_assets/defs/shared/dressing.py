"""How an asset is presented: group, kinds, owner, the page that explains it, and its pool.

Owns: one place for what a deployment may change, `dagster.owner` and `dagster.docs_url`. Both are
read once, when definitions are loaded. A pool bounds the runs that do one costly thing, however
they were launched; a job's tag only bounds runs of that job, and materializing an asset by hand is
none. How many is the instance's to say (`concurrency.pools` of dagster.yaml).
"""

from __future__ import annotations

import re

import dagster as dg

from resources.errors import SettingsError
from resources.settings_sources import load_settings
from tiering_assets.defs.shared.partitions import ledger_partitions, named

BOOKIE_READ_POOL = named("bookie_read")
RELEASE_POOL = named("release")
_OWNER = re.compile(r"team:[A-Za-z0-9_.-]+|[^@\s]+@[^@\s]+\.[^@\s]+", re.ASCII)


def check_owner(owner: str) -> list[str]:
    """Owners of every asset; none for an empty name. SettingsError for what Dagster refuses."""
    if owner and _OWNER.fullmatch(owner) is None:
        raise SettingsError(
            f"dagster.owner is {owner!r}, expected team:NAME or an e-mail address, or nothing"
        )
    return [owner] if owner else []


_SETTINGS = load_settings().settings.dagster
OWNERS = check_owner(_SETTINGS.owner)


def docs_link(page: str) -> dg.MetadataValue:
    """A link to a page of docs/ below `dagster.docs_url`; its place in the checkout without one."""
    base = _SETTINGS.docs_url.rstrip("/")
    return dg.MetadataValue.url(f"{base}/{page}") if base else dg.MetadataValue.path(f"docs/{page}")


def asset_spec(
    key: dg.AssetKey,
    description: str,
    *,
    group: str,
    kinds: set[str],
    page: str,
    of_ledgers: bool = True,
    metadata: dict[str, object] | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
) -> dg.AssetSpec:
    """One asset of ours. `page` is the file in docs/ that says more; `of_ledgers` partitions it."""
    return dg.AssetSpec(
        key,
        description=description,
        metadata={"docs": docs_link(page), **(metadata or {})},
        partitions_def=ledger_partitions if of_ledgers else None,
        freshness_policy=freshness_policy,
        group_name=group,
        kinds=kinds,
        owners=OWNERS,
        skippable=True,
    )
