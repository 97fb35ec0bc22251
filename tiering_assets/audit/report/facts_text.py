r"""The facts as text: one spelling, so that they have one SHA-256, and no text can end its block.

Owns: JSON as records have it (sorted keys, no spaces, one newline at the end), in ASCII, each item
of a list of facts on a line of its own. `<`, `>`, `&` and the backtick stand as `\u003c` and so on,
so that the same text is safe in HTML and in a fenced block of Markdown.
"""

from __future__ import annotations

import functools
import json
from hashlib import sha256
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from tiering_assets.audit.report.facts import AuditFacts
from tiering_assets.resources.errors import FormatError

_UNSAFE: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&`"})


@functools.cache
def _adapter() -> TypeAdapter[AuditFacts]:
    return TypeAdapter(AuditFacts)


def facts_text(facts: AuditFacts) -> str:
    body = _adapter().dump_python(facts, mode="json")
    fields = [f"{_canonical(name)}:{_lines(body[name])}" for name in sorted(body)]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def read_facts(text: str, *, name: str) -> AuditFacts:
    """FormatError for what are no facts, or not in their one spelling."""
    try:
        facts = _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if where == "schema":
            raise FormatError(
                f"{name}: this version does not know the schema of its facts; check it with the "
                f"version that wrote it"
            ) from None
        raise FormatError(f"{name}: its facts are damaged: {where}: {first['msg']}") from None
    if facts_text(facts) != text:
        raise FormatError(f"{name}: its facts are spelled in another way than tierkeeper writes")
    return facts


def text_sha256(text: str) -> str:
    """Lower-case hex, over exactly the bytes that stand in the file."""
    return sha256(text.encode()).hexdigest()


def _lines(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(_canonical, value)) + "\n]"
    return _canonical(value)


def _canonical(value: Any) -> str:
    """None of the four characters is ever outside of a string."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.translate(_UNSAFE)
