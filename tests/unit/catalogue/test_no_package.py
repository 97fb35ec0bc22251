"""Who asks for the catalogue's tables by name is told which package is missing."""

import sys
from collections.abc import Callable

import pytest

from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.status import catalogue_status
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.upkeep.upkeep import keep_up
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.kept_tables import KEPT
from tiering_assets.resources.tables import missing_package

COMMANDS: dict[str, Callable[..., object]] = {
    "catalogue post": post,
    "catalogue post, of topics": scan,
    "catalogue prove": prove,
    "catalogue status": catalogue_status,
    "catalogue settle": lambda stack, catalogue: keep_up(
        stack, catalogue, all_rows=True, tell=lambda _line: None
    ),
    "catalogue rebuild": lambda stack, _catalogue: rebuild(stack),
    "catalogue sql, lineage": lambda _stack, catalogue: catalogue.opened(),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_catalogue_names_it(scene, command, monkeypatch):
    scene.publish()
    scene.end()
    KEPT.forget()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(PrerequisiteError, match="pip install deltalake"):
        COMMANDS[command](scene.stack, Catalogue.of(scene.stack))


def test_with_it_nothing_is_missing():
    assert missing_package() is None
