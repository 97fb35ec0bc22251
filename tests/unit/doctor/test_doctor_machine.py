"""What doctor says of the loop over entries, with the library and without it."""

import os
import subprocess
import sys

from tiering_assets.doctor.machine import check_machine
from tiering_assets.ground.finding import Level

SAID = """
from tiering_assets.doctor.machine import check_machine
[found] = [one for one in check_machine() if one.check == "loop over entries"]
print(found.level.name, found.text)
"""


def test_the_library_is_told():
    [found] = [one for one in check_machine() if one.check == "loop over entries"]
    assert found.level is Level.OK
    assert found.text.startswith("native: core-")


def test_pythons_loop_is_told_with_its_reason_and_the_price():
    ended = subprocess.run(
        [sys.executable, "-c", SAID],
        env=os.environ | {"TIERKEEPER_NATIVE": "off"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("WARN Python's: TIERKEEPER_NATIVE is off")
