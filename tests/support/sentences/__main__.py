"""Prints every sentence that a user can meet, and where.

    python -m tests.support.sentences [--only PART] [--place BEGINNING] [--problems]

The parts are help, code, records and docs. `--problems` prints the refused ones alone, each with
its reasons, and counts them by file. `--open` prints them as tests/support/sentences_open.txt has
them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.support.sentences.every import PARTS, every_sentence, refused, refused_line


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", choices=PARTS, help="one part of them")
    parser.add_argument("--problems", action="store_true", help="refused ones, with the reasons")
    parser.add_argument("--open", action="store_true", help="refused ones as the list has them")
    parser.add_argument("--place", default="", help="only places that begin so")
    asked = parser.parse_args()
    found = [one for one in every_sentence(asked.only) if one.place.startswith(asked.place)]
    if asked.open:
        sys.stdout.writelines(
            f"{line}\n" for line in sorted({refused_line(*x) for x in refused(found)})
        )
        return 0
    if not asked.problems:
        sys.stdout.writelines(f"{one.place}: {one.text}\n" for one in found)
        return 0
    counts: Counter[str] = Counter()
    for one, reasons in refused(found):
        counts[one.home] += 1
        sys.stdout.write(f"{one.place}: {'; '.join(reasons)}\n    {one.text}\n")
    sys.stdout.writelines(f"{count:5} {home}\n" for home, count in counts.most_common())
    sys.stdout.write(f"{counts.total()} of {len(found)} sentences are refused\n")
    return 1 if counts else 0


if __name__ == "__main__":
    raise SystemExit(main())
