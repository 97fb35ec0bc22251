"""A Python that has Spark's own needs only, and an archive of the other packages that workers
import.

`pyproject.toml`'s dependencies are the driver's; docs/spark.md names those of a worker.
"""

from __future__ import annotations

import re
import tarfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

IMAGE = ("pyarrow", "pandas", "numpy", "pytz", "tzdata", "python-dateutil", "six")
SENT = ("boto3", "google-crc32c", "protobuf", "pydantic", "cryptography")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def with_needs(names: tuple[str, ...]) -> dict[str, Distribution]:
    """The installed distributions of these names, and of all that they need here."""
    found: dict[str, Distribution] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # of another platform, or an extra
            continue
        for need in found[name].requires or ():
            match = _NAME.match(need)
            if match is not None and "extra ==" not in need:
                waiting.append(match[0].lower())
    return found


def link_packages(folder: Path, names: tuple[str, ...] = IMAGE) -> Path:
    """Make `folder` a place for packages that has these and no others."""
    folder.mkdir(parents=True)
    for one in with_needs(names).values():
        tops = {Path(str(file)).parts[0] for file in one.files or ()}
        for top in tops - {"..", "__pycache__"}:
            (folder / top).symlink_to(str(one.locate_file(top)))
    return folder


def pack_packages(path: Path, names: tuple[str, ...] = SENT) -> Path:
    """Write a tar.gz whose top level are these packages and what they need."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for one in with_needs(names).values():
            for file in one.files or ():
                relative = Path(str(file))
                if relative.parts[0] != ".." and relative.suffix != ".pyc":
                    archive.add(str(one.locate_file(file)), str(relative), recursive=False)
    return path
