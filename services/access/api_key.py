"""API keys: `prd_` and 256 random bits. Only the SHA-256 is stored.

A fast hash is right here: the secret is random over 2^256, so there is nothing to guess from a stolen hash, and a slow one
would let anyone spend our processor with wrong keys. Every presented key costs one hash and one indexed look-up, known
or not.
"""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "prd_"
MAX_KEY_CHARS = 256


def new_key() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
