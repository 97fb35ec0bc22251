"""Rows and proofs as frames that a notebook shows.

Owns: a proof that does not hold ends its cell with an error that says which. No table of proofs is
shown as if all were well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from tiering_assets.lineage.proof_rules import TruthCompared
from tiering_assets.resources.errors import IntegrityError

_SAID_MAX = 20


def show_whole() -> None:
    """Frames are shown with all of their rows and texts: what is left out may be what is wrong."""
    pd.options.display.max_rows = None
    pd.options.display.max_colwidth = None


def frame_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """One row each, with these columns also where there is none."""
    return pd.DataFrame([[row[name] for name in columns] for row in rows], columns=[*columns])


def agreed(proofs: Sequence[TruthCompared]) -> pd.DataFrame:
    """What was compared, a row each.

    Raises:
        IntegrityError: something does not agree, or nothing was compared. It says what.
    """
    if not proofs:
        raise IntegrityError("nothing was compared, so nothing is proven")
    wrong = [one.what for one in proofs if not one.agrees]
    if wrong:
        more = f"; and {len(wrong) - _SAID_MAX} more" if len(wrong) > _SAID_MAX else ""
        raise IntegrityError(
            f"{len(wrong)} of {len(proofs)} do not agree: {'; '.join(wrong[:_SAID_MAX])}{more}"
        )
    return frame_of(({"agrees": one.agrees, "what": one.what} for one in proofs), _PROOF)


_PROOF = ("agrees", "what")
