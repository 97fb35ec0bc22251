"""Does automation run? One sentence for each reason why not, the same wherever people look.

Owns: off by the settings comes before all else, as nothing must run then; a daemon that is gone
comes before sensors that somebody stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

OFF: Final = "automation is off: auto.enabled is false. `tierkeeper auto on --execute` turns it on"
ON: Final = "automation is on: sensors ask for runs"
UNTIL_ON: Final = "Off until automation is turned on: `tierkeeper auto on --execute`."
HEARTBEAT_MAX: Final = timedelta(seconds=120)  # it beats every 30 s


def daemon_problems(beat_at: datetime | None, now: datetime) -> list[str]:
    """What is wrong with the daemon, with what starts it; nothing while it beats."""
    if beat_at is None:
        return ["no daemon has ever run: start `dagster-daemon run -w workspace.yaml`"]
    if now - beat_at > HEARTBEAT_MAX:
        age = (now - beat_at).total_seconds()
        return [f"the daemon's last heartbeat is {age:.0f} s old: start it again"]
    return []


def what_stands(daemon: Sequence[str], stopped: Sequence[str]) -> str:
    """A line of what keeps it from asking for all that is due; empty where nothing does.

    `daemon` is what is wrong with it, `stopped` are sensors that somebody stopped.
    """
    said = [*daemon]
    if stopped:
        are = "is" if len(stopped) == 1 else "are"
        said.append(
            f"{', '.join(stopped)} {are} stopped: `tierkeeper auto on --execute` starts what is "
            "stopped"
        )
    return f"automation does not run as it should: {'; '.join(said)}" if said else ""
