"""Doctor's questions about keys: who signs certificates, whose signature counts, what it costs not
to.

Makes no key: that is a person's decision, and the private one must lie where it is safe.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering_assets.ground.finding import Finding, ok, warn
from tiering_assets.ground.signing import load_public_keys, load_signer
from tiering_assets.resources.settings import Settings

_MAKE = "tierkeeper key make DIRECTORY"


def check_keys(settings: Settings) -> Iterator[Finding]:
    """SettingsError where a key is configured and cannot be used."""
    signer, accepted = load_signer(settings), load_public_keys(settings)
    if signer is None and not accepted:
        yield warn(
            "keys",
            f"no key signs certificates: {_instead(settings)} before a release",
            f"{_MAKE}, and set what it prints",
        )
    elif signer is None:
        yield ok("keys", f"{_accepted(accepted.key_ids)}; nothing is signed here")
    elif signer.key_id not in accepted.key_ids:
        others = f"only {_accepted(accepted.key_ids)}" if accepted else "no key is accepted"
        yield warn(
            "keys",
            f"key {signer.key_id} signs certificates here, and {others}",
            "name its public file in sign.public_key_files wherever ledgers are released",
        )
    else:
        yield ok("keys", f"key {signer.key_id} signs; {_accepted(accepted.key_ids)}")


def _instead(settings: Settings) -> str:
    if settings.release.reread_without_key:
        return "every byte of copy and bookies is read again"
    return "the certificate alone is believed (release.reread_without_key)"


def _accepted(key_ids: tuple[str, ...]) -> str:
    return f"accepted: {', '.join(key_ids)}"
