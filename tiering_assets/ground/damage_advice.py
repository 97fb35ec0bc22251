"""What people do about a damaged copy, in one place."""

from __future__ import annotations

from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name


def next_step(ml_name: str | None) -> str:
    """The command, and what it comes to; without a topic, for all of them."""
    chosen = "" if ml_name is None else f" --topic {parse_managed_ledger_name(ml_name)}"
    return (
        f"`tierkeeper scrub run{chosen} --execute` puts a sound copy in its place while bookies have the ledger, "
        f"and names the entries that are lost where they do not"
    )
