"""Text of others in lines of ours. Pure.

Owns: a topic's name may hold any character, a line's end and a terminal's commands among them. What
prints one shows such a character by its escape, so that one line stays one line and says what it
is.
"""

from __future__ import annotations

import re
from typing import Final

# Control characters, line and paragraph separators, and what turns the direction of writing.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_SAID_MAX: Final = 400


def plain(text: str) -> str:
    r"""The text with every such character escaped as in `\n`, `\x1b` or `\u202e`; else the same."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def said(error: Exception) -> str:
    """What a library says in coloured lines, in one plain one."""
    return " ".join(_COLOUR.sub("", str(error)).split())[:_SAID_MAX]
