"""Options that several commands have in common, declared once and handed over as one value.

Owns: a command function asks for a group by a parameter such as
`consent: Annotated[Consent, CONSENT]`; the command line has the group's options in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from tiering_assets.cli.shared.session import Session


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """`options` maps the name of each to its annotation and default; `make` gets their values.

    `make` raises a usage error for values that do not go together, before anything is opened.
    """

    options: Mapping[str, tuple[Any, Any]]
    make: Callable[..., Any]

    def parameters(self) -> list[inspect.Parameter]:
        return [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
            for name, (annotation, default) in self.options.items()
        ]

    def value(self, session: Session, values: dict[str, Any]) -> Any:
        """Take the group's values out of `values` and make one of them."""
        return self.make(session, **{name: values.pop(name) for name in self.options})


def group_of(parameter: inspect.Parameter) -> OptionGroup | None:
    """The group that a parameter of a command function asks for."""
    found = [one for one in get_args(parameter.annotation) if isinstance(one, OptionGroup)]
    return found[0] if found else None
