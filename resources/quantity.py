"""Durations and sizes as people write them: `10m`, `1.5GiB`, `50MiB/s`. Pure.

Owns: what is printed reads back as the same value. A number alone keeps its unit: seconds, bytes.
MiB is 1024 KiB and MB is 1000 kB; case counts, for 10M would be minutes to one and megabytes to
another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

_LONGEST: Final = 64  # of a text; nobody writes more, and huge numbers take time
_DIGITS_MAX: Final = 15
_FORM = re.compile(
    r"([+-]?(?:[0-9](?:_?[0-9])*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z]*)"
)


class QuantityError(ValueError):
    """A text is no such quantity. The message says what was expected, and quotes nothing."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """`units` by what people write; `printed` are those that we write, the largest first."""

    expected: str
    units: Mapping[str, Fraction]
    printed: tuple[str, ...]

    def parse(self, text: str) -> Fraction:
        """The exact number of seconds or bytes. QuantityError for any other text."""
        found = _FORM.fullmatch(text.strip()) if len(text) <= _LONGEST else None
        if found is None or (found[2] and found[2] not in self.units):
            raise QuantityError(self.expected)
        return Fraction(found[1].replace("_", "")) * self.units.get(found[2], 1)

    def whole(self, exact: Fraction) -> str | None:
        """The shortest text with a whole number, the largest unit of these; None if none is."""
        counts = [(exact / self.units[unit], unit) for unit in self.printed]
        texts = [f"{n} {unit}" for n, unit in counts if n.denominator == 1 and n > 0]
        return min(texts, key=lambda one: len(one.split()[0]), default=None)


_DURATION = Quantity(
    "expected a duration such as 200ms, 30s, 10m, 4h or 7d; a number alone is seconds",
    {
        name: Fraction(seconds)
        for names, seconds in (
            ("ms", "0.001"),
            ("s sec second seconds", "1"),
            ("m min minute minutes", "60"),
            ("h hour hours", "3600"),
            ("d day days", "86400"),
            ("w week weeks", "604800"),
        )
        for name in names.split()
    },
    ("d", "h", "min", "s", "ms"),
)
_SIZE = Quantity(
    "expected a size such as 64MiB, 1.5GiB or 100MB; a number alone is bytes",
    {"B": Fraction(1), "KB": Fraction(1000)}
    | {
        f"{letter}{infix}B": Fraction(base**power)
        for infix, letters, base in (("i", "KMGTP", 1024), ("", "kMGTP", 1000))
        for power, letter in enumerate(letters, start=1)
    },
    ("PiB", "TiB", "GiB", "MiB", "KiB", "PB", "TB", "GB", "MB", "kB", "B"),
)
_PER_SECOND = re.compile(r"\s*/\s*s\s*$")
DURATION_EXPECTED: Final = _DURATION.expected
SIZE_EXPECTED: Final = _SIZE.expected
RATE_EXPECTED: Final = (
    "expected a rate such as 50MiB/s or 100MB/s; a number alone is bytes per second"
)


def parse_duration(text: str) -> float:
    """`10m` -> 600.0 seconds."""
    try:
        return float(_DURATION.parse(text))
    except OverflowError:
        raise QuantityError(DURATION_EXPECTED) from None


def duration_text(seconds: float) -> str:
    """`14400.0` -> `4 h`; what has no whole number of any unit is given in seconds."""
    exact = Fraction(repr(float(seconds)))
    text = "0 s" if exact == 0 else _DURATION.whole(exact)
    return text if text and len(text) <= _DIGITS_MAX else f"{float(seconds)!r} s"


def parse_size(text: str) -> int:
    """`1.5GiB` -> 1610612736 bytes. A part of a byte is left out where the unit is a larger one."""
    exact = _SIZE.parse(text)
    small = exact < 1 or not text.strip()[-2:].isalpha()  # no unit, or B
    if "e" in text.lower() or (exact.denominator != 1 and small):
        raise QuantityError(SIZE_EXPECTED)
    return int(exact)


def size_text(count: int) -> str:
    """`67108864` -> `64 MiB`."""
    return _SIZE.whole(Fraction(count)) or f"{count} B"


def parse_rate(text: str) -> int:
    """`50MiB/s` or `50MiB` -> bytes per second."""
    try:
        return parse_size(_PER_SECOND.sub("", text))
    except QuantityError:
        raise QuantityError(RATE_EXPECTED) from None


def rate_text(count: int) -> str:
    """`52428800` -> `50 MiB/s`."""
    return f"{size_text(count)}/s"
