"""The shared stack as fault tests use it, and one parent for processes that get killed."""

from __future__ import annotations

import pytest

from tests.support.crash_driver import CrashDriver
from tests.support.fault_lab import Lab


@pytest.fixture(scope="session")
def lab(stack):
    return Lab(stack)


@pytest.fixture(scope="session")
def crash_driver():
    with CrashDriver() as driver:
        yield driver
