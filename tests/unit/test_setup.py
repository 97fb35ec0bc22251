"""What .ci/setup leaves behind: every process that starts later only reads it."""

import sysconfig
from importlib.util import cache_from_source
from pathlib import Path


def test_every_installed_module_is_compiled():
    installed = Path(sysconfig.get_path("purelib"))
    modules = [path for path in installed.rglob("*.py") if path.is_file()]
    missing = [str(path) for path in modules if not Path(cache_from_source(str(path))).exists()]
    assert len(modules) > 1000
    assert missing == []
