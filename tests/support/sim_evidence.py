"""How old the evidence of an effect may be, and what each process was told when.

Owns: the bounds, and the rule I21. What a process does to topics, objects and records stands on
answers that it asked for itself, and no answer is older than its kind's bound when the effect's own
call begins. Times are true ones: no clock of a process is believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tiering_assets.resources.metastore.topic_names import managed_ledger_path, parse_topic_name
from tiering_assets.resources.settings import Settings

SLACK_S: Final = 15.0  # what the effect's own call, or the answer's way back, may take
AGE_MAX_S: Final = 60.0
SURROUNDINGS_AGE_MAX_S: Final = 600.0
_BY_MINUTES: Final = frozenset({"brokers", "policy", "shadows", "bytes"})

HOLDS: Final = ("holds", "")
BROKERS: Final = ("brokers", "")
BOOKIES: Final = ("bookies", "")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds for holds, nodes and objects, and for what changes rarely around a topic."""

    age_s: float
    surroundings_s: float

    @classmethod
    def of(cls, settings: Settings) -> Bounds:
        evidence = getattr(settings, "evidence", None)
        return cls(
            getattr(evidence, "age_max_s", AGE_MAX_S),
            getattr(evidence, "surroundings_age_max_s", SURROUNDINGS_AGE_MAX_S),
        )

    def at_most(self, question: Question) -> float:
        return self.surroundings_s if question[0] in _BY_MINUTES else self.age_s


Question = tuple[str, str]


def node_of(ml_name: str) -> Question:
    return "node", managed_ledger_path(ml_name)


def policy_of(ml_name: str) -> Question:
    return "policy", ml_name


def object_at(key: str) -> Question:
    return "object", key


def bytes_of(key: str) -> Question:
    """Only who reads them learns that bytes changed where they lie: size and ETag stay."""
    return "bytes", key


def shadows_beside(ml_name: str) -> Question:
    """A shadow is found by listing the topics and reading each one's node."""
    return "shadows", managed_ledger_path(ml_name).rpartition("/")[0]


def question_of(room: str, method: str, args: tuple[Any, ...]) -> Question | None:
    """What a call asks, if it is evidence for anything."""
    match room, method:
        case "objects", "head" | "get":
            return object_at(args[0])
        case "objects", "get_range":
            return bytes_of(args[0])
        case "objects", "list_objects" if args and str(args[0]).endswith("/holds/"):
            return HOLDS
        case "metadata", "get":
            return "node", args[0]
        case "metadata", "children" if args[0].endswith("/persistent"):
            return "shadows", args[0]
        case "metadata", "children" if args[0].endswith("/available"):
            return BOOKIES
        case "broker", "runtime_configs":
            return BROKERS
        case "broker", "effective_offload_policies":
            return policy_of(parse_topic_name(args[0]).managed_ledger_name)
        case _:
            return None


def too_old(
    bounds: Bounds, asked: dict[Question, float], needs: Iterable[Question], *, began: float
) -> list[str]:
    """What an effect whose call began then had not asked, or too long before."""
    faults = []
    for need in needs:
        at, most = asked.get(need), bounds.at_most(need)
        if at is None:
            faults.append(f"{need[0]} {need[1]} was never asked".replace("  ", " "))
        elif began - at > most + SLACK_S:
            faults.append(f"{need[0]} {need[1]} was asked {began - at:.0f} s before, {most:g} may")
    return faults
