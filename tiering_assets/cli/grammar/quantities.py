"""Options that are durations or sizes: `10m`, `1.5GiB`; a number alone is seconds, or bytes."""

from __future__ import annotations

from typing import Any

import typer

from tiering_assets.cli.shared.usage import UsageError


def duration_option(*names: str, least: float = 0.0, default: str = "", **more: Any) -> Any:
    """An option of seconds, no fewer than `least`; `default` is how help tells it."""

    def parse(text: object) -> float:
        from tiering_assets.resources.quantity import QuantityError, duration_text, parse_duration

        if not isinstance(text, str):
            return float(str(text))
        try:
            seconds = parse_duration(text)
        except QuantityError as error:
            raise UsageError(f"{names[0]} {text}: {error}") from None
        if seconds < least:
            raise UsageError(f"{names[0]} {text}: must be at least {duration_text(least)}")
        return seconds

    return _option(names, parse, "DURATION", default, more)


def size_option(*names: str, **more: Any) -> Any:
    """An option of bytes."""

    def parse(text: object) -> int:
        from tiering_assets.resources.quantity import QuantityError, parse_size

        if not isinstance(text, str):
            return int(str(text))
        try:
            count = parse_size(text)
        except QuantityError as error:
            raise UsageError(f"{names[0]} {text}: {error}") from None
        if count < 0:
            raise UsageError(f"{names[0]} {text}: must not be negative")
        return count

    return _option(names, parse, "SIZE", "", more)


def _option(names: tuple[str, ...], parse: Any, metavar: str, default: str, more: Any) -> Any:
    shown: Any = default or False
    return typer.Option(*names, parser=parse, metavar=metavar, show_default=shown, **more)
