"""What `make prove-book` found, kept in build/book.json."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support.rooms import ROOT

RESULT = ROOT / "build" / "book.json"


def keep(part: str, **found: Any) -> None:
    """One of its parts, of the code that is checked out."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    kept[part] = {"commit": done.stdout.strip(), **found}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
