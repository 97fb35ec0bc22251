"""Doctor's look at the keys beside our records, and at the holds and pauses that cannot be read.

Holds and pauses are looked at one by one, as a person wrote each. Of all other keys the first
KEYS_MAX are, which are fifty requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tiering_assets.ground.finding import Finding, fail, ok, warn
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.records.key_kinds import FOLDERS, TABLES, is_record_key, what_a_stray_may_be
from tiering_assets.resources.settings import Settings

_CHECK = "records"
_NAMED_MAX = 5
KEYS_MAX = 50_000
_BY_PEOPLE = ("holds/", "pauses/")


def check(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        yield from check_records(stack)


def check_records(stack: Stack) -> Iterator[Finding]:
    """What lies beside the records, and which brakes cannot be read."""
    if meant := [
        f"{key} ({what_a_stray_may_be(key)})"
        for folder in _BY_PEOPLE
        for key in stack.book.strays(folder)
    ]:
        yield fail(
            _CHECK,
            f"of no record's form: {_named(meant)}",
            "set what was meant with `tierkeeper hold set` or `tierkeeper tiering pause`, then delete them",
        )
    looked, strays = 0, list[str]()
    for key in islice(stack.book.every_key(), KEYS_MAX):
        looked += 1
        if not is_record_key(key) and not key.startswith((*_BY_PEOPLE, TABLES)):
            strays.append(key)
    if strays:
        yield warn(
            _CHECK,
            f"{len(strays)} keys below {stack.book.prefix} are of no record's form and are passed over: "
            f"{_named(strays)}",
            "delete them, or move what is not ours elsewhere",
        )
    if unread := [key for folder in _BY_PEOPLE for key in _unreadable(stack, folder)]:
        yield fail(
            _CHECK,
            f"cannot be read, and hold or pause all the same: {_named(unread)}",
            "`tierkeeper hold lift` or `tierkeeper tiering resume` takes each away; set it again if it "
            "was meant",
        )
    if not (meant or strays or unread):
        more = " (more were not looked at)" if looked == KEYS_MAX else ""
        yield ok(_CHECK, f"{looked} keys{more}, each of one of {len(FOLDERS)} kinds")


def _unreadable(stack: Stack, folder: str) -> Iterator[str]:
    return (key for key in stack.book.keys(folder) if not stack.book.is_readable(key))


def _named(keys: Iterable[str]) -> str:
    found = [*keys]
    more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    return ", ".join(found[:_NAMED_MAX]) + more
