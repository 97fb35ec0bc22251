"""What happens right after an effect: to be put in the place of a module's `reach`."""

from __future__ import annotations

from collections.abc import Callable


def at_effect(point: str) -> Callable[[Callable[[], object]], Callable[..., None]]:
    """Decorate what is to happen each time this point is reached; at others nothing does."""

    def made(act: Callable[[], object]) -> Callable[..., None]:
        def reach(reached: str, *_ledger_ids: int, **_about: object) -> None:
            if reached == point:
                act()

        return reach

    return made
