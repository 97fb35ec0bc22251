"""What a build does besides packing: it compiles the loop over entries (resources/native/core.c).

Without the compiler, which is a wheel like any other, the build goes on: Python does all then, and
`tierkeeper doctor` says so.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = "tiering_assets/resources/native"


class NativeLibraries(BuildHookInterface):
    """Run by hatchling for a wheel and for a checkout that is installed as it lies there."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries, and have them packed although git ignores them."""
        del version
        if find_spec("ziglang") is None:
            self.app.display_warning("ziglang is not installed: built without core.c")
            return
        for path in _builder(Path(self.root, NATIVE)).build():
            build_data["artifacts"].append(f"/{NATIVE}/built/{path.name}")


def _builder(folder: Path) -> Any:
    """The module by its path: what it is a part of needs packages that a build does not have."""
    spec = spec_from_file_location("native_build", folder / "build.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(folder / "build.py")
    module = sys.modules["native_build"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
