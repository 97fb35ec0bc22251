"""Settings that no range allows: simulated ledgers have a few hundred bytes, their blocks too."""

from __future__ import annotations

import copy
from typing import TypeVar

_Section = TypeVar("_Section")


def unchecked(section: _Section, **values: object) -> _Section:
    """Another section with these values, whatever their ranges say."""
    made = copy.copy(section)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
