"""Which scope the options of a `hold` or `tiering` command mean: exactly one, or it is a usage
error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tiering_assets.cli.shared.selection import require_one_choice

if TYPE_CHECKING:
    from tiering_assets.look.brakes.scopes import Scope


def chosen_scope(
    topic: str | None,
    namespace: str | None,
    everything: bool,
    *,
    of_topic: Callable[[str], Scope],
    of_namespace: Callable[[str], Scope],
    **ledger: int | None,
) -> Scope:
    """The one that was given. Each command refuses a name that is none in words of its own.

    `ledger` is there for commands that have such an option.
    """
    from tiering_assets.look.brakes.scopes import EVERYTHING, ledger_scope

    others = {"--topic": topic, "--namespace": namespace, "--all": everything}
    require_one_choice(**{f"--{name}": one is not None for name, one in ledger.items()}, **others)
    if topic is not None:
        return of_topic(topic)
    if namespace is not None:
        return of_namespace(namespace)
    return next((ledger_scope(one) for one in ledger.values() if one is not None), EVERYTHING)
