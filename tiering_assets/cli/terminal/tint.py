"""Which colour a word of state has: red is wrong, yellow waits for something, green is well. Pure.

Owns: a word that is in none of the lists has no colour. Colour repeats what a word says and says
nothing more, so nobody misses anything without it.
"""

from __future__ import annotations

import re
from typing import Final

_WRONG: Final = (
    "broken damaged quarantined unsafe failed fail refused error finding problem unknown LOST "
    "ERROR BROKEN"
)
_WAITS: Final = (
    "wait waits warn held paused disabled excluded capped unconfirmed note copying releasing "
    "release_due keep RUNNING NOT_RUN"
)
_WELL: Final = "ok published released verified done healed intact deleted release SUCCESS"
_PHRASES: Final = {
    "never looked at": "yellow",
    "no longer published": "yellow",
    "not admitted": "yellow",
    "over budget": "yellow",
    "left alone": "yellow",
    "not trimmed": "red",
    "broker cannot read": "red",
    "broker may release first": "red",
    "unsealed in BookKeeper": "red",
    "metadata node too large": "red",
    "ok, equal to the bookies": "green",
}
_TINTS: Final = {
    word: tint
    for words, tint in ((_WRONG, "red"), (_WAITS, "yellow"), (_WELL, "green"))
    for word in words.split()
} | _PHRASES
_FINDINGS = re.compile(r"\d+ findings?")


def tint_of(word: str) -> str:
    """`red`, `yellow`, `green`, or nothing."""
    return "red" if _FINDINGS.fullmatch(word) else _TINTS.get(word, "")
