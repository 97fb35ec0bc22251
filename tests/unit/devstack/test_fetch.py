import hashlib
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tiering_assets.resources.devstack import fetch
from tiering_assets.resources.devstack.artifacts import (
    DISTRIBUTIONS,
    OFFLOADERS,
    SERVER,
    ivy_module_xml,
)
from tiering_assets.resources.devstack.fetch import (
    distribution_dir,
    fetch_distribution,
    require_pinned,
)
from tiering_assets.resources.errors import PrerequisiteError

MAVEN = "{http://ant.apache.org/ivy/maven}"


@pytest.mark.parametrize("artifact", [SERVER, OFFLOADERS])
def test_pins_are_whole(artifact):
    assert len(bytes.fromhex(artifact.sha512)) == 64
    assert artifact.file_name == f"{artifact.name}-4.0.8-bin.tar.gz"


def test_every_release_has_pins_and_a_directory_of_its_own(tmp_path):
    for version, pins in DISTRIBUTIONS.items():
        assert pins.server.file_name == f"pulsar-server-distribution-{version}-bin.tar.gz"
        for artifact in (pins.server, pins.offloaders):
            assert len(bytes.fromhex(artifact.sha512)) == 64
    assert len({distribution_dir(tmp_path, version) for version in DISTRIBUTIONS}) == 3


def test_ivy_is_asked_for_one_archive_and_no_dependencies():
    root = ElementTree.fromstring(ivy_module_xml(SERVER))
    (dependency,) = root.iter("dependency")
    assert dependency.attrib["transitive"] == "false"
    assert dependency.attrib["rev"] == "4.0.8"
    (archive,) = dependency
    assert archive.attrib[f"{MAVEN}classifier"] == "bin"


def test_another_archive_is_refused(tmp_path):
    good = b"the archive"
    pin = replace(SERVER, sha512=hashlib.sha512(good).hexdigest(), size_bytes=len(good))
    archive = tmp_path / "archive"
    archive.write_bytes(good)
    require_pinned(archive, pin)
    for bad in (b"the archivf", b"the archive ", b""):
        archive.write_bytes(bad)
        with pytest.raises(PrerequisiteError, match="not the pinned archive: expected 11 bytes"):
            require_pinned(archive, pin)


def test_a_fetched_distribution_is_used_without_java(monkeypatch, tmp_path):
    distribution_dir(tmp_path).mkdir()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert fetch_distribution(tmp_path) == distribution_dir(tmp_path)


def test_a_failed_download_says_what_ivy_said_and_leaves_no_distribution(monkeypatch, tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho '  WARN: module not found'\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setattr(fetch, "require_java", lambda: java)
    lines: list[str] = []
    with pytest.raises(PrerequisiteError, match=r"could not be downloaded.*module not found"):
        fetch_distribution(tmp_path / "cache", lines.append)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["fetch.lock"]
    assert lines == ["fetching pulsar-server-distribution-4.0.8-bin.tar.gz (234 MiB)"]
