"""Encryption at rest: MultiFernet over the keys of `ORCHESTRATOR_ENCRYPTION_KEYS`, the newest first."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from orchestrator.config import Settings
from orchestrator.errors import DamagedValue, Misconfigured

UNOPENED = "a sealed value opens with none of ORCHESTRATOR_ENCRYPTION_KEYS; put the old key back"
DAMAGED = "a sealed value is damaged: restore it from a backup"
MIN_BYTES: Final = 73  # of a Fernet token: version, time, IV, one block and the signature
VERSION: Final = 0x80  # of a Fernet token, its first byte


class Cipher:
    """Seals JSON values for the database and opens them again."""

    def __init__(self, keys: list[str]) -> None:
        """Take Fernet keys, the newest first. All keys decrypt, the newest encrypts."""
        try:
            fernets = [Fernet(key) for key in keys]
            self._newest = fernets[0]
            self._fernet = MultiFernet(fernets)
        except (ValueError, IndexError) as error:
            raise Misconfigured(
                "ORCHESTRATOR_ENCRYPTION_KEYS must hold Fernet keys (32 bytes, url-safe base64) with commas"
            ) from error

    def seal(self, value: object) -> bytes:
        """Return `value` as encrypted JSON."""
        return self._fernet.encrypt(orjson.dumps(value))

    def open(self, sealed: bytes) -> Any:
        """Return the decrypted value.

        Raises:
            Misconfigured: no configured key opens it.
            DamagedValue: it is no sealed value.
        """
        try:
            return orjson.loads(self._fernet.decrypt(bytes(sealed)))
        except InvalidToken as error:
            if _is_token(bytes(sealed)):
                raise Misconfigured(UNOPENED) from error
            raise DamagedValue(DAMAGED) from error

    def rotate(self, sealed: bytes) -> bytes:
        """Return the value re-encrypted with the newest key.

        Raises:
            Misconfigured: no configured key opens it.
        """
        try:
            return self._fernet.rotate(bytes(sealed))
        except InvalidToken as error:
            raise Misconfigured(UNOPENED) from error

    def is_newest(self, sealed: bytes) -> bool:
        """Whether the value is encrypted with the newest key."""
        try:
            self._newest.decrypt(bytes(sealed))
        except InvalidToken:
            return False
        return True


def _is_token(sealed: bytes) -> bool:
    """Whether a value has the form of a Fernet token, of whichever key."""
    try:
        token = base64.urlsafe_b64decode(sealed)
    except (binascii.Error, ValueError):
        return False
    return len(token) >= MIN_BYTES and token[0] == VERSION


def new_key() -> str:
    """Return a new key."""
    return Fernet.generate_key().decode()


def cipher(settings: Settings) -> Cipher:
    """Return the installation's cipher.

    Raises:
        Misconfigured: no key is set.
    """
    if settings.encryption_keys is None:
        raise Misconfigured(
            "set ORCHESTRATOR_ENCRYPTION_KEYS (or _FILE); `orchestrator rotate-keys --new` prints a key"
        )
    keys = [key.strip() for key in settings.encryption_keys.get_secret_value().split(",") if key.strip()]
    return Cipher(keys)
