"""The keys that the settings name, read from their files when a step needs them.

Owns: a key that is configured and cannot be used is a SettingsError before anything is done, never
a certificate without a signature, or a release without a check. No message shows a file's content.
A key is made only where somebody asks for one, and no file is ever replaced by it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tiering_assets.records.signature import PublicKeys, Signer, new_private_key
from tiering_assets.resources.errors import FormatError, RefusedError, SettingsError
from tiering_assets.resources.settings import Settings

PRIVATE_NAME = "certificates.pem"
PUBLIC_NAME = "certificates.pub.pem"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKey:
    """Files of a key, as `sign.private_key_file` and `sign.public_key_files` take them."""

    key_id: str
    private: Path
    public: Path


def make_key(directory: Path) -> MadeKey:
    """Write a new key into a directory; only its owner can read the private file.

    Raises:
        RefusedError: a key lies there. Certificates that it signed count by its public file alone.
        SettingsError: the directory or a file in it cannot be made.
    """
    pem = new_private_key()
    signer = Signer(pem)
    place = directory.expanduser().resolve()
    made = MadeKey(key_id=signer.key_id, private=place / PRIVATE_NAME, public=place / PUBLIC_NAME)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = [path for path in (made.private, made.public) if path.exists()]
        if there:
            raise RefusedError(
                f"{there[0]} is there: what its key signed would count no more; name another "
                "directory, or move the file away"
            )
        for path, body, mode in (
            (made.private, pem, 0o600),
            (made.public, signer.public_pem, 0o644),
        ):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(body)
    except OSError as error:
        raise SettingsError(f"a key in {place}: {error.strerror}") from error
    return made


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
