"""Who notices each mutant: what killers.json says. `make mutants` reads it, and FIND=1 writes
it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

KILLERS = Path(__file__).with_name("killers.json")


@dataclass(slots=True)
class Killers:
    """By the mutants' names."""

    killed: dict[str, str] = field(default_factory=dict)
    no_guard: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = KILLERS) -> Killers:
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def write(self, names: Sequence[str], path: Path = KILLERS) -> None:
        """In the order of the names, and of those alone."""
        told = {
            "killed": {name: self.killed[name] for name in names if name in self.killed},
            "no_guard": {name: self.no_guard[name] for name in names if name in self.no_guard},
        }
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")

    def uncovered(self, names: Sequence[str]) -> list[str]:
        """Mutants that stand nowhere."""
        return [name for name in names if name not in self.killed and name not in self.no_guard]
