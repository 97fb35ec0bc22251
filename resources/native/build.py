"""Makes the libraries of core.c, one for each kind of machine.

`python -m tiering_assets.resources.native.build`, or the build of a wheel or a checkout, runs it.

The compiler is Zig's, which comes as a wheel and compiles for every target on every machine. So a
checkout needs none of its own, and an archive for Spark workers carries the libraries of all.

Owns: the same source and compiler give the same bytes; the list names the source that it was built
from and each file's SHA-256, which the loader compares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
SOURCE: Final = "core.c"
BUILT: Final = "built"
LIST: Final = "built.json"

# The oldest C library that a Spark image may still have; the functions need memcpy of it.
TARGETS: Final = {
    "x86_64-gnu": ("x86_64-linux-gnu.2.17", "baseline+sse4_2"),
    "aarch64-gnu": ("aarch64-linux-gnu.2.17", "generic+crc"),
}
WARNINGS: Final = ("-Wall", "-Wextra", "-Werror")
_FLAGS: Final = ("-std=c11", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-s")


def build(folder: Path = HERE, *, cache: Path | None = None) -> list[Path]:
    """Compile core.c of a folder into its `built/`, and return the files.

    The compiler keeps what it makes of its own library in `cache`; without one, nowhere.

    Raises:
        ModuleNotFoundError: there is no compiler: the package `ziglang` is not installed.
        CalledProcessError: the compiler refused the source.
    """
    import ziglang  # noqa: F401 - asked for before anything is written

    built = folder / BUILT
    built.mkdir(exist_ok=True)
    digests = {}
    with tempfile.TemporaryDirectory(prefix="tierkeeper-zig-") as own:  # a home may be read-only
        where = str(cache or own)
        caches = {"ZIG_GLOBAL_CACHE_DIR": where, "ZIG_LOCAL_CACHE_DIR": where}
        for target, (triple, machine) in TARGETS.items():
            path = built / f"core-{target}.so"
            zig = [sys.executable, "-m", "ziglang", "cc", "-target", triple, f"-mcpu={machine}"]
            command = [*zig, *WARNINGS, *_FLAGS, "-o", path.name, f"../{SOURCE}"]
            subprocess.run(command, cwd=built, env=os.environ | caches, check=True)
            digests[path.name] = sha256(path.read_bytes()).hexdigest()
    listed = {"source": sha256((folder / SOURCE).read_bytes()).hexdigest(), "files": digests}
    (built / LIST).write_text(json.dumps(listed, indent=2, sort_keys=True) + "\n")
    return [built / name for name in (*digests, LIST)]


if __name__ == "__main__":
    for made in build():
        sys.stdout.write(f"{made}\n")
