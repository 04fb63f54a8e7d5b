"""Signatures of statements: a DSSE envelope (github.com/secure-systems-lab/dsse, v1.0.0), alone or in the bundle that
`cosign attest-blob` writes, checked with public keys. Certificates are cosign's business: nothing here asks an issuer.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.core.text import error_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
LARGEST_ENVELOPE = 16 << 20
"""Bytes of a statement or an envelope. A run has at most 64 rounds of 48 points and servers, of 0.9 and 1.4 kB with
every field (tests/unit/evidence/test_tampering.py): 7 MB, and 9.4 in base64."""
_KEY = "an ECDSA public key in PEM, as `cosign generate-key-pair` writes to cosign.pub"


class SignatureError(ValueError):
    """Not an envelope, or not signed by a listed key; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A statement's text and its signature, in base64; "" for a statement without an envelope."""

    text: str
    signature: str = ""


def unsealed(data: bytes) -> Sealed:
    """A statement, an envelope or a bundle, as a file has it. Raises SignatureError."""
    if len(data) > LARGEST_ENVELOPE:
        raise SignatureError(f"it has {len(data):,} bytes, but at most {LARGEST_ENVELOPE:,} are read")
    try:
        found = json.loads(data)
        envelope: Any = found.get("dsseEnvelope", found)
        if "payload" not in envelope:
            return Sealed(text=data.decode())
        (signature,) = envelope["signatures"]
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise SignatureError(f"payloadType: it must be {PAYLOAD_TYPE}")
        return Sealed(text=_bytes(envelope["payload"]).decode(), signature=str(signature["sig"]))
    except SignatureError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = f"it is neither a statement nor an envelope with one signature: {error_text(error)}"
        raise SignatureError(why) from error


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise SignatureError("its signature, or its payload, is not in base64") from error


def key_id(pem: str) -> str:
    """The SHA-256 of a public key, as `openssl pkey -pubin -outform DER | sha256sum` prints it. Raises ValueError."""
    lines = [line.strip() for line in pem.strip().splitlines()]
    if len(lines) < 3 or (lines[0], lines[-1]) != ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"):
        raise ValueError(f"it must be {_KEY}")
    return hashlib.sha256(base64.b64decode("".join(lines[1:-1]), validate=True)).hexdigest()


def public_key(name: str, pem: str) -> "EllipticCurvePublicKey":
    """Raises ValueError with the name. Here and below cryptography is imported by those who check a signature."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    with suppress(ValueError, UnsupportedAlgorithm):
        if isinstance(key := load_pem_public_key(pem.encode()), EllipticCurvePublicKey):
            return key
    raise ValueError(f"{name}: it must be {_KEY}")


def signer(sealed: Sealed, keys: Mapping[str, str]) -> str:
    """The name of the key, of `keys` (name → PEM), that has signed. Raises SignatureError; ValueError for a key that is
    none of ECDSA."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256

    names = ", ".join(keys)
    if not sealed.signature:
        raise SignatureError(f"it is not signed; listed: {names}")
    body = sealed.text.encode(errors="surrogatepass")
    # The pre-authentication encoding: what is signed names the type of the payload, too.
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(body), body)
    for name, pem in keys.items():
        try:
            public_key(name, pem).verify(_bytes(sealed.signature), signed, ECDSA(SHA256()))
        except InvalidSignature:
            continue
        return name
    raise SignatureError(f"no listed key has signed it; listed: {names}")
