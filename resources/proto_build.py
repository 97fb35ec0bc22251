"""Generates resources/_proto from proto/*.proto: `python -m tiering_assets.resources.proto_build
[--check]`.

Owns: the checked-in code is exactly what the pinned generator makes of the .proto files, so that
regenerating is a no-op. `--check` regenerates beside the tree and ends with 1 on any difference.
Needs a checkout and grpcio-tools (a development dependency); nothing at run time imports this.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tiering_assets.resources.errors import PrerequisiteError, TierkeeperError

ROOT = Path(__file__).resolve().parent.parent
PROTO_DIR = ROOT / "proto"
GENERATED_DIR = ROOT / "resources" / "_proto"
_GENERATED_PATTERNS = ("*_pb2.py", "*_pb2.pyi")


def generate(target: Path) -> None:
    """Write the generated modules and their stubs of every .proto file into `target`.

    Raises:
        PrerequisiteError: grpcio-tools is not installed, there is no proto folder, or it refused.
    """
    try:
        from grpc_tools import protoc
    except ImportError as error:
        raise PrerequisiteError(
            "grpcio-tools is missing: install the development dependencies"
        ) from error
    sources = sorted(str(path) for path in PROTO_DIR.glob("*.proto"))
    if not sources:
        raise PrerequisiteError(f"no .proto files in {PROTO_DIR}: run this in a checkout")
    arguments = ["protoc", f"-I{PROTO_DIR}", f"--python_out={target}", f"--pyi_out={target}"]
    if protoc.main([*arguments, *sources]) != 0:
        raise PrerequisiteError("the protobuf compiler refused the .proto files; see its output")


def differences() -> list[str]:
    """One sentence per checked-in file that is missing, stale or no longer generated."""
    with tempfile.TemporaryDirectory(prefix="tierkeeper-proto-") as folder:
        generate(Path(folder))
        fresh = _contents(Path(folder))
    kept = _contents(GENERATED_DIR)
    said = [f"{name} is missing" for name in sorted(fresh.keys() - kept.keys())]
    said += [f"{name} has no .proto file any more" for name in sorted(kept.keys() - fresh.keys())]
    said += [
        f"{name} is stale" for name in sorted(fresh) if kept.get(name, fresh[name]) != fresh[name]
    ]
    return said


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for pattern in _GENERATED_PATTERNS
        for path in folder.glob(pattern)
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tiering_assets.resources.proto_build", description=__doc__
    )
    parser.add_argument("--check", action="store_true", help="compare only, change nothing")
    options = parser.parse_args(arguments)
    try:
        if not options.check:
            generate(GENERATED_DIR)
            return 0
        said = differences()
    except TierkeeperError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if said:
        sys.stderr.write(
            f"resources/_proto differs from proto/: {'; '.join(said)}. "
            "Run python -m tiering_assets.resources.proto_build and commit the result.\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
