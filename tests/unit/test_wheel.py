"""What is built holds one package, and a user's own `resources` beside it is the user's."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.rooms import FOLDERS, MODULES, ROOT

LINK = ROOT / "tiering_assets" / "resources"
SOURCES = {".py", ".pyi", ".typed", ".properties", ".c", ".so"}
IMPORTS = """
import sys
import resources
import tiering_assets.definitions, tiering_assets.cli.main, tiering_assets.resources.errors
from tiering_assets.resources import spark_session
assert spark_session._LOG4J.is_file()
print(resources.OURS, resources.__file__)
print(tiering_assets.resources.errors.__file__)
print([name for name in sys.modules if name.startswith("resources.")])
"""
COMMAND = "import sys; from tiering_assets.cli.main import main; sys.exit(main())"


def build(what, tree, folder):
    """By the locked builder, without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", what, "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, timeout=120)
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder that `pip install --no-deps --target` fills."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture
def project(tmp_path):
    """A user's project with a package `resources`, which knows nothing of ours."""
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "__init__.py").write_text("OURS = 'the user'\n")
    (tmp_path / "resources" / "settings.py").write_text("raise RuntimeError('not asked for')\n")
    return tmp_path


def run(project, installed, code, *arguments):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TIERKEEPER_")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=project,
        env={**kept, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_one_package_is_built_with_every_file_of_it(wheel):
    names = [name for name in contents(wheel) if ".dist-info/" not in name]
    wanted = [
        f"{'' if folder == 'tiering_assets' else 'tiering_assets/'}{path.relative_to(ROOT)}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SOURCES or path.name == "built.json"
    ]
    assert sorted(names) == sorted(wanted)
    assert "tiering_assets/resources/errors.py" in names
    assert "tiering_assets/resources/native/built/core-x86_64-gnu.so" in names


def test_beside_a_users_resources_all_of_ours_is_found_and_none_of_the_users(project, installed):
    users, errors, others = run(project, installed, IMPORTS).splitlines()
    assert users == f"the user {project}/resources/__init__.py"
    assert errors == str(installed / "tiering_assets/resources/errors.py")
    assert others == "[]"


def test_the_command_starts_beside_a_users_resources(project, installed):
    assert "Usage: tierkeeper" in run(project, installed, COMMAND, "--help")
    assert "metadata.store" in run(project, installed, COMMAND, "config", "show")


def test_a_source_distribution_makes_the_same_wheel(wheel, tmp_path):
    source = build("sdist", ROOT, tmp_path / "source")
    with tarfile.open(source) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert len(names) == len({*names})
    [tree] = (tmp_path / "unpacked").iterdir()
    assert contents(build("wheel", tree, tmp_path / "again")) == contents(wheel)


def test_a_checkout_has_a_link_and_each_module_one_name():
    assert LINK.is_symlink()
    assert os.readlink(LINK) == "../resources"
    assert len({Path(path).resolve() for path in MODULES.values()}) == len(MODULES)
    assert "tiering_assets.resources.errors" in MODULES
    assert not [name for name in MODULES if not name.startswith("tiering_assets")]
