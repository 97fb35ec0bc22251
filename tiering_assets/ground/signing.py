"""The keys that the settings name, read from their files when a step needs them.

Owns: a key that is configured and cannot be used is a SettingsError before anything is done, never
a certificate without a signature, or a release without a check. No message shows a file's content.
"""

from __future__ import annotations

from pathlib import Path

from tiering_assets.records.signature import PublicKeys, Signer
from tiering_assets.resources.errors import FormatError, SettingsError
from tiering_assets.resources.settings import Settings


def load_signer(settings: Settings) -> Signer | None:
    """The key that signs certificates; None where none is configured."""
    name = settings.sign.private_key_file
    if not name:
        return None
    body = _read("sign.private_key_file", name)
    try:
        return Signer(body)
    except FormatError as error:
        raise SettingsError(f"sign.private_key_file: {name}: {error}") from None


def load_public_keys(settings: Settings) -> PublicKeys:
    """The keys whose signatures release and audit accept; empty where none is configured."""
    bodies = {name: _read("sign.public_key_files", name) for name in _names(settings)}
    for name, body in bodies.items():
        try:
            PublicKeys([body])
        except FormatError as error:
            raise SettingsError(f"sign.public_key_files: {name}: {error}") from None
    return PublicKeys(bodies.values(), required=settings.sign.require)


def has_public_keys(settings: Settings) -> bool:
    """Whether signatures count here; opens no file."""
    return bool(_names(settings))


def _names(settings: Settings) -> list[str]:
    return [name for part in settings.sign.public_key_files.split(",") if (name := part.strip())]


def _read(setting: str, name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise SettingsError(f"{setting}: {name}: {error.strerror}") from error
