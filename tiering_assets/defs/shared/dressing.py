"""How an asset is presented: group, kinds, owner, and the page that explains it.

Owns: one place for what a deployment may change, `dagster.owner`, `dagster.docs_url`
and `dagster.code_url`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import dagster as dg

from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.notebook.executed import FOLDER as NOTEBOOKS
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import DagsterSettings

_OWNER = re.compile(r"team:[A-Za-z0-9_.-]+|[^@\s]+@[^@\s]+\.[^@\s]+", re.ASCII)


def check_owner(owner: str) -> list[str]:
    """Owners of every asset; none for an empty name. SettingsError for what Dagster refuses."""
    if owner and _OWNER.fullmatch(owner) is None:
        raise SettingsError(
            f"dagster.owner is {owner!r}, expected team:NAME or an e-mail address, or nothing"
        )
    return [owner] if owner else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Dressing:
    """What all assets of a cluster have in common. The URLs are empty where docs/ and the checkout
    are not served.
    """

    cluster: ClusterNames
    owners: list[str]
    docs_url: str
    code_url: str

    @classmethod
    def of(cls, settings: DagsterSettings, *, console_url: str = "") -> Dressing:
        """SettingsError for a cluster's name or an owner that Dagster refuses."""
        return cls(
            cluster=ClusterNames.of(settings, console_url=console_url),
            owners=check_owner(settings.owner),
            docs_url=settings.docs_url,
            code_url=settings.code_url,
        )

    def docs_link(self, page: str) -> dg.MetadataValue:
        """A link to a page of docs/ below its URL; its place in the checkout without one."""
        return _link(self.docs_url, page, below="docs/")

    def links(self, page: str, module: str) -> dict[str, dg.MetadataValue]:
        """To the page that explains an asset, and to the module that makes it."""
        path = f"{module.replace('.', '/')}.py"
        return {"docs": self.docs_link(page), "code": _link(self.code_url, path)}

    def notebook_links(self, *names: str) -> dict[str, object]:
        """The page about notebooks, and those of these names that are there, for the UI to show."""
        paths = {name: NOTEBOOKS / f"{name}.ipynb" for name in names}
        shown = {
            name: dg.MetadataValue.notebook(str(path))
            for name, path in paths.items()
            if path.is_file()
        }
        return {"notebooks": self.docs_link("notebooks.md"), **shown}

    def asset_spec(
        self,
        key: dg.AssetKey,
        description: str,
        *,
        group: str,
        kinds: set[str],
        page: str,
        module: str,
        of_ledgers: bool = True,
        metadata: dict[str, object] | None = None,
        freshness_policy: dg.FreshnessPolicy | None = None,
    ) -> dg.AssetSpec:
        """One asset. `page` is the file in docs/ that says more, `module` makes it; `of_ledgers`
        partitions it.
        """
        return dg.AssetSpec(
            key,
            description=description,
            metadata={**self.links(page, module), **(metadata or {})},
            partitions_def=self.cluster.partitions if of_ledgers else None,
            freshness_policy=freshness_policy,
            group_name=group,
            kinds=kinds,
            owners=self.owners,
            skippable=True,
        )


def _link(base: str, path: str, *, below: str = "") -> dg.MetadataValue:
    """A path below its URL; its place in the checkout without one."""
    base = base.rstrip("/")
    return dg.MetadataValue.url(f"{base}/{path}") if base else dg.MetadataValue.path(below + path)
