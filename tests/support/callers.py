"""pytest plugin: `-p tests.support.callers` writes which test ran which of our functions, and for
how long.

Into the folder of CALLERS_DIR, a file a process: {"module:function": {test: seconds}}. With it, who
may notice a mistake in a function need not be guessed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.support.rooms import PACKAGE, ROOT

_OURS = str(ROOT / PACKAGE) + os.sep

_called: set[CodeType] = set()
_tests: defaultdict[str, dict[str, float]] = defaultdict(dict)


def _seen(frame: FrameType, event: str, _argument: Any) -> None:
    if event == "call":
        _called.add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _called.clear()
    threading.setprofile(_seen)
    sys.setprofile(_seen)
    began = time.monotonic()
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        took = round(time.monotonic() - began, 3)
        for code in {code for code in _called if code.co_filename.startswith(_OURS)}:
            _tests[_name(code)][item.nodeid] = took


def _name(code: CodeType) -> str:
    module = Path(code.co_filename).relative_to(ROOT).with_suffix("")
    outer = code.co_qualname.partition(".<locals>")[0]
    return f"{'.'.join(module.parts)}:{outer}"


def pytest_sessionfinish() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder = Path(os.environ["CALLERS_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{worker}.json").write_text(json.dumps(_tests))
