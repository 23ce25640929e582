"""Outputs with which a stack can be signalled: signed URLs, tokens and keys of its resources.

Such a value is a credential. A caller who may not signal does not receive it, although the template's author
made an output of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from orchestrator.operations.outputs.outputs import Output, OutputInputs
from orchestrator.resources.ec2_signatures import TOKEN_PREFIX
from orchestrator.security.encryption import Cipher
from orchestrator.security.tokens import token_hash
from orchestrator.store.access import grants
from orchestrator.store.connections.database import Database
from orchestrator.template.secret_values import MASK

TEXTS: Final = re.compile(r"[A-Za-z0-9_-]{16,}")  # keys, secrets and ids of users
TOKENS: Final = re.compile(rf"{re.escape(TOKEN_PREFIX)}[A-Za-z0-9_-]+")
SIGNED_OBJECT: Final = "temp_url_sig="  # a signed URL of an object store, which knows no roles


def without_signal_access(
    database: Database, cipher: Cipher, stack: OutputInputs, outputs: Sequence[Output]
) -> list[Output]:
    """Return outputs with the values masked that contain a credential for signals."""
    texts = {output.key: _text(output) for output in outputs if output.secret and output.error is None}
    if not texts:
        return [*outputs]
    everything = " ".join(texts.values())
    found = set(TEXTS.findall(everything))
    tokens = {token_hash(token): token for token in TOKENS.findall(everything)}
    with database.borrow() as db:
        known = grants.known(db, sorted(found), sorted(tokens))
        keys = [cipher.open(secret) for secret in grants.user_secrets(db, stack.id)]
    credentials = {*known.names, *(tokens[digest] for digest in known.hashes), *(found & {*keys})}

    def gives(text: str) -> bool:
        return SIGNED_OBJECT in text or not credentials.isdisjoint(
            [*TEXTS.findall(text), *TOKENS.findall(text)]
        )

    return [
        replace(output, value=MASK) if output.key in texts and gives(texts[output.key]) else output
        for output in outputs
    ]


def _text(output: Output) -> str:
    return orjson.dumps(output.value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
