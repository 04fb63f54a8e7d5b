"""Statements signed as `cosign attest-blob --key` signs them, with keys made here."""

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.imported import file

from paceline.api.round import rounds_of
from paceline.core.manifest import Manifest
from paceline.core.names import SIGNATURE
from paceline.plan.run.statement import portable, statement, to_text

TYPE = "application/vnd.in-toto+json"
Key = ec.EllipticCurvePrivateKey


def key(number: int = 1) -> Key:
    """Each number is another key, the same each time."""
    return ec.derive_private_key(number, ec.SECP256R1())


def pem(key: Key) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def signature(text: str, key: Key, kind: str = TYPE) -> str:
    body = text.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(body), body)
    return base64.b64encode(key.sign(signed, ec.ECDSA(SHA256()))).decode()


def bundle(text: str, key: Key, kind: str = TYPE) -> dict[str, Any]:
    payload = base64.b64encode(text.encode()).decode()
    envelope = {"payload": payload, "payloadType": kind, "signatures": [{"sig": signature(text, key, kind)}]}
    media = "application/vnd.dev.sigstore.bundle.v0.3+json"
    return {"mediaType": media, "verificationMaterial": {"publicKey": {"hint": ""}}, "dsseEnvelope": envelope}


def signed_file(key: Key | None, run: Manifest | None = None) -> Manifest:
    """The run as `paceline evidence verify -o` writes it, in memory; without a signature if no key is given."""
    run = run or file()
    annotations = {SIGNATURE: signature(text(run), key)} if key else {}
    return {**run, "metadata": {**run["metadata"], "annotations": annotations}}


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def stated(run: Manifest | None = None) -> Manifest:
    """The statement about pool latency, measured at a desk, or about another run with its rounds."""
    run = run or file()
    return statement(portable(run, rounds_of(run)), rounds_of(run))


def text(run: Manifest | None = None) -> str:
    return to_text(stated(run))
