"""Links from pages to the store's console; without one, paths."""

import dagster as dg
import pytest

from tests.dagster.test_event_budget import (  # noqa: F401 - a fixture
    lived,
)
from tests.dagster.test_launchpad import launch
from tests.support.default_cluster import CLUSTER
from tiering_assets.definitions import build_definitions
from tiering_assets.defs.shared.metadata import object_link
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import DagsterSettings, Settings, StoreSettings

CONSOLE = "https://console.example.com/{bucket}/browse?key={key}"


@pytest.mark.parametrize(
    "url", ["https://x", "https://x/{key}", "https://x/{bucket}/{key}/{who}", "https://x/{"]
)
def test_a_page_without_its_two_places_is_refused(url):
    with pytest.raises(SettingsError, match=r"expected \{bucket\} and \{key\} in it"):
        ClusterNames.of(DagsterSettings(), console_url=url)


def test_names_in_a_link_are_quoted_and_without_a_console_it_is_a_path():
    assert object_link(CONSOLE, "b", "a b/c?d") == dg.MetadataValue.url(
        "https://console.example.com/b/browse?key=a%20b/c%3Fd"
    )
    assert object_link("", "b", "k") == dg.MetadataValue.path("s3://b/k")


def test_a_ledgers_object_is_a_link_where_the_settings_name_a_console(lived):  # noqa: F811
    fleet = lived(by="ledger", ledgers=1)
    settings = Settings(
        dagster=fleet.stack.settings.dagster, store=StoreSettings(console_url=CONSOLE)
    )
    fleet.defs = build_definitions(settings)
    assert launch(fleet, "offload").success
    [record] = fleet.instance.fetch_materializations(CLUSTER.offloaded_objects, limit=1).records
    link = record.asset_materialization.metadata["object"]
    assert isinstance(link, dg.UrlMetadataValue)
    [key] = [key for key in fleet.world.objects.peek_keys() if key.endswith("-ledger-0")]
    bucket = fleet.stack.settings.store.bucket
    assert link.value == CONSOLE.format(bucket=bucket, key=key)
