"""Feed the library of core.c damaged batches and blocks for some time, and compare with Python.

    python -m tests.support.fuzz_core --minutes 60 [--sanitizer]

With `--sanitizer` core.c is compiled anew by the machine's C compiler with its address and
undefined-behaviour sanitizers, and the memory of each case is its own. Without, inputs lie against
pages that may not be touched. The last line says how many cases ran; any other end names the seed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.core_cases import Cases
from tiering_assets.resources.native.build import HERE, SOURCE
from tiering_assets.resources.native.core import Core
from tiering_assets.resources.native.loader import this_loop

_FLAGS = ("-std=c11", "-O1", "-g", "-shared", "-fPIC", "-fno-sanitize-recover=all")
_UNDER = "TIERKEEPER_TEST_SANITIZED"


def compiler() -> str | None:
    """The machine's own C compiler, if it has one."""
    return shutil.which("cc")


LEAST = 1001  # a slow machine takes longer, and tries as many


def fuzz(core: Core, seconds: float, first_seed: int, *, fenced: bool) -> int:
    """Cases run, from a seed on. Whatever is wrong names the seed."""
    cases, seed, until = Cases(core, fenced=fenced), first_seed, time.monotonic() + seconds
    while time.monotonic() < until or seed - first_seed < LEAST:
        if seed % 100_000 == 0:
            sys.stderr.write(f"seed {seed}\n")
        try:
            cases.run(seed)
        except AssertionError as error:
            raise SystemExit(f"seed {seed}: library and reference differ: {error}") from error
        seed += 1
    return seed - first_seed


def _sanitized(folder: Path) -> tuple[Path, str]:
    """The library under sanitizers, and the library that must be loaded before all others."""
    cc = compiler()
    if cc is None:
        raise SystemExit("a C compiler is needed for --sanitizer: install gcc or clang")
    machine = "-msse4.2" if os.uname().machine == "x86_64" else "-march=armv8-a+crc"
    path = folder / "core.so"
    sanitizers = "-fsanitize=address,undefined"
    subprocess.run(
        [cc, *_FLAGS, sanitizers, machine, "-o", str(path), str(HERE / SOURCE)], check=True
    )
    said = subprocess.run([cc, "-print-file-name=libasan.so"], capture_output=True, text=True)
    return path, said.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--sanitizer", action="store_true")
    asked = parser.parse_args()
    if asked.sanitizer and _UNDER not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            path, first = _sanitized(Path(folder))
            under = {_UNDER: str(path), "LD_PRELOAD": first, "PYTHONMALLOC": "malloc"}
            under["ASAN_OPTIONS"] = "detect_leaks=0:halt_on_error=1"
            command = [sys.executable, "-m", "tests.support.fuzz_core", *sys.argv[1:]]
            return subprocess.run(command, env=os.environ | under, check=False).returncode
    if asked.sanitizer:
        core: Core | None = Core(ctypes.CDLL(os.environ[_UNDER]))
    else:
        core = this_loop().core
    if core is None:
        raise SystemExit(f"there is no library to look at: {this_loop().said}")
    ran = fuzz(core, asked.minutes * 60, asked.seed, fenced=not asked.sanitizer)
    sys.stdout.write(f"{ran} cases from seed {asked.seed}, none differs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
