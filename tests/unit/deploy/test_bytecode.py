"""Units and image run as a user who cannot write bytecode, so the installation has to.

uv compiles nothing. Without bytecode a process compiles all that it imports at every start: Great
Expectations takes 10.3 CPU seconds in place of 3.7. The compile steps are run here as they are
written.
"""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
VENV = "/opt/tierkeeper"
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
PAGE = (ROOT / "docs" / "deployment.md").read_text()
BASE_IMAGE_LIBRARY = "/usr/local/lib/python3.11"


def steps_of_the_image():
    """Shell commands of the image's build in their order, up to where it becomes another user."""
    before, found, _after = DOCKERFILE.replace("\\\n", " ").partition("\nUSER tierkeeper\n")
    assert found
    runs = re.findall(r"^RUN (.*)$", before, re.MULTILINE)
    return [step.strip() for run in runs for step in run.split("&&")]


def steps_of_the_units():
    """Shell commands of the section on systemd, up to where the units are started."""
    section = PAGE.partition("\n## systemd\n")[2].partition("\n## ")[0]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    steps = [step.strip() for line in block[1].splitlines() for step in line.split("&&")]
    return steps[: next(i for i, step in enumerate(steps) if step.startswith("systemctl"))]


STEPS = {"image": steps_of_the_image(), "units": steps_of_the_units()}


def compile_steps(steps):
    return [
        (at, shlex.split(step, comments=True))
        for at, step in enumerate(steps)
        if "compileall" in step
    ]


@pytest.mark.parametrize("where", STEPS)
def test_what_is_installed_is_compiled_after_the_last_installation(where, tmp_path):
    installed = max(at for at, step in enumerate(STEPS[where]) if "pip install" in step)
    after = [words for at, words in compile_steps(STEPS[where]) if at > installed]
    assert after, f"{where}: nothing is compiled once everything is installed"
    module = tmp_path / "venv/lib/python3.11/site-packages/installed/module.py"
    module.parent.mkdir(parents=True)
    module.write_text("ANSWER = 42\n")
    for words in after:
        assert words[0] == "python"  # of the virtual environment, which is first in PATH
        there = [word.replace(VENV, str(tmp_path / "venv")) for word in words[1:]]
        ours = [word for word in there if word != BASE_IMAGE_LIBRARY]
        subprocess.run([sys.executable, *ours], check=True, env={"PATH": os.defpath})
    assert Path(cache_from_source(str(module))).exists()


def test_the_image_compiles_the_standard_library_of_its_python():
    """The official image deletes that bytecode. Debian's Python, which the units use, has it."""
    version = re.search(r"^FROM python:(3\.\d+)-slim", DOCKERFILE, re.MULTILINE)
    assert version is not None
    assert f"/usr/local/lib/python{version[1]}" == BASE_IMAGE_LIBRARY
    assert any(BASE_IMAGE_LIBRARY in words for _at, words in compile_steps(STEPS["image"]))
