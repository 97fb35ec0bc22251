"""`make screenshots`: the pictures of docs/images, of the demo's pages in Debian's Chromium.

Rewrites all of them, 1600 x 1000. One above LARGEST would slow a page of documentation down.
"""

from __future__ import annotations

import sys
import time

from tests.support.browser_check import truth_of
from tests.support.browser_pages import ROOT, chromium, chromium_pages, copied_home, pages, settle

IMAGES = ROOT / "docs" / "images"
LARGEST = 200_000  # bytes
DRAWN_S = 2.0  # until what was loaded is drawn
# By name the page, and what is to be read on it.
PICTURES = {
    "timeline": ("/overview/activity/timeline", "release"),
    "backlog": ("/assets/pulsar/tiering_backlog", "by_topic"),
    "ledger": (
        "/assets/pulsar/deleted_bookie_ledgers?view=partitions&partition={ledger}",
        "released_by",
    ),
    "batch-summary": ("/assets/pulsar/offload_contexts?view=events", "published"),
}


def main() -> int:
    chromium()
    home = copied_home()
    truth = truth_of(home)
    large = []
    with pages(home) as base, chromium_pages(base) as make:
        for name, (path, text) in PICTURES.items():
            page = make()
            page.goto(base + path.format(ledger=truth.ledger_id))
            settle(page)
            page.get_by_text(text).first.wait_for()
            time.sleep(DRAWN_S)
            picture = IMAGES / f"{name}.png"
            page.screenshot(path=str(picture))
            page.close()
            size = picture.stat().st_size
            sys.stdout.write(f"{picture.relative_to(ROOT)}: {size:,} bytes\n")
            if size > LARGEST:
                large.append(name)
    if large:
        sys.stdout.write(f"above {LARGEST:,} bytes: {', '.join(large)}\n")
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
