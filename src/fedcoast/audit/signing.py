"""Heads and certificates, signed with a key outside the run folder (Ed25519, by `cryptography`).

Anyone who can write to a run folder can rewrite its whole chain, but cannot sign the new head without the key.
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedcoast.audit.verification import Verification
from fedcoast.errors import BadFile, BadSetting, printable, require
from fedcoast.storage.files import read_json, read_plain, write_json, write_whole
from fedcoast.storage.run_folder import is_run

FORMAT = "fedcoast-signed-head"
VERSION = 1
_SIGNED_BY = "Signature: "
_NOT_PROVEN = (
    "That the server told its recorder the truth; this certificate is about what was recorded.",
    "When the rounds happened; the date is the signer's.",
    "That the settings named above are those that were agreed.",
)


def new_key(path: Path) -> Path:
    """Write a private key to a new file and its public key beside it; return the path of the public key."""
    if os.path.lexists(path):
        raise BadSetting(f"{path} is there already; a key is never written over")
    for folder in Path(os.path.realpath(path)).parents:
        if is_run(folder):
            _check_place(folder, path)
    key, serialization = _ed25519().Ed25519PrivateKey.generate(), _serialization()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    write_whole(path, lambda part: part.write_bytes(private))
    public_file = path.with_name(f"{path.name}.pub")
    write_whole(public_file, lambda part: part.write_bytes(public))
    return public_file


def signed_file(folder: Path) -> Path:
    """The default place of a run's signed head: beside the run folder, not in it."""
    folder = Path(os.path.realpath(folder))
    return folder.with_name(f"{folder.name}.signed.json")


def sign_head(found: Verification, key: Path, file: Path) -> None:
    """Sign the head of a run that was verified, and write that to a file."""
    _check_place(Path(found.folder), key)
    if not found.agrees:
        raise BadFile(f"{found.folder} could not be verified; only a verified run is signed")
    statement = {
        "format": FORMAT,
        "version": VERSION,
        "head": found.head,
        "last_round": found.last_round,
        "rounds": found.rounds,
        "signed": _now(),
    }
    write_json(file, {**statement, "signature": _sign(key, _canonical(statement))})


def read_signed_head(file: Path, public_key: Path) -> str:
    """The head that a file states, if it was signed with the key."""
    content = read_json(file)
    try:
        signature = content.pop("signature")
        if (content["format"], content["version"]) != (FORMAT, VERSION) or not isinstance(content["head"], str):
            raise BadFile(f"{file} is not a signed head of version {VERSION}")
    except (AttributeError, KeyError, TypeError) as error:
        raise BadFile(f"{file} is not a signed head ({error!r})") from error
    _verify(file, public_key, signature, _canonical(content))
    return str(content["head"])


def write_certificate(found: Verification, key: Path, file: Path) -> None:
    """One signed page that says what was verified, and what that does not prove."""
    _check_place(Path(found.folder), key)
    if not found.agrees:
        raise BadFile(f"{found.folder} could not be verified; only verified files are certified")
    text = _certificate(found)
    signed = f"{text}{_SIGNED_BY}{_sign(key, text.encode())}\n"
    write_whole(file, lambda part: part.write_text(signed, encoding="utf-8"))


def read_certificate(file: Path, public_key: Path) -> str:
    """The head that a certificate states, if every word of it was signed with the key."""
    try:
        text = read_plain(file, follow=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file} cannot be read ({error})") from error
    body, found, signature = text.rpartition(_SIGNED_BY)
    heads = [line.removeprefix("Head: ") for line in body.splitlines() if line.startswith("Head: ")]
    if not found or len(heads) != 1:
        raise BadFile(f"{file} is not a certificate of fedcoast")
    _verify(file, public_key, signature.removesuffix("\n"), body.encode())
    return heads[0]


def _certificate(found: Verification) -> str:
    anchored_word = "yes" if found.anchored else "no: rounds cut off before this certificate would not have shown"
    lines = [
        "Certificate of verification, by fedcoast verify",
        "",
        f"Run: {Path(os.path.realpath(found.folder)).name}",
        f"Recorded: {found.rounds:,} rounds up to {found.last_round}, {found.files:,} files, {found.bytes:,} bytes",
        f"Head: {found.head}",
        f"Signed: {_now()}",
        f"Compared with a head noted earlier: {anchored_word}",
        "",
        "Verified: every byte of every round has the hash that the chain states for it.",
        *_list(found.confirmed),
        "",
        "Not proven:",
        *_list(_NOT_PROVEN),
        "",
    ]
    return "".join(f"{printable(line)}\n" for line in lines)


def _list(sentences: Sequence[str]) -> list[str]:
    return [f"  * {sentence}" for sentence in sentences]


def _check_place(folder: Path, key: Path) -> None:
    if Path(os.path.realpath(key)).is_relative_to(os.path.realpath(folder)):
        raise BadSetting(f"{key} lies in the run folder; keep a private key where others cannot read it")


def _sign(key: Path, message: bytes) -> str:
    try:
        private = _serialization().load_pem_private_key(_read(key), None)
        if not isinstance(private, _ed25519().Ed25519PrivateKey):
            raise TypeError("of another kind")
    except (TypeError, ValueError) as error:
        raise BadFile(f"{key} is not an Ed25519 private key ({error}); fedcoast sign --new-key makes one") from error
    return base64.b64encode(private.sign(message)).decode()


def _verify(file: Path, key: Path, signature: object, message: bytes) -> None:
    invalid = require("cryptography.exceptions", extra="audit").InvalidSignature
    try:
        public = _serialization().load_pem_public_key(_read(key))
        if not isinstance(public, _ed25519().Ed25519PublicKey):
            raise TypeError("of another kind")
    except (TypeError, ValueError) as error:
        raise BadFile(f"{key} is not an Ed25519 public key ({error})") from error
    try:
        public.verify(base64.b64decode(str(signature), validate=True), message)
    except (invalid, ValueError) as error:
        raise BadFile(f"{file} was not signed with {key}, or was changed since") from error


def _read(key: Path) -> bytes:
    try:
        return read_plain(key, follow=True)
    except OSError as error:
        raise BadFile(f"{key} cannot be read ({error.strerror})") from error


def _canonical(statement: Mapping[str, Any]) -> bytes:
    return json.dumps(statement, sort_keys=True, separators=(",", ":")).encode("ascii")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _ed25519() -> Any:
    return require("cryptography.hazmat.primitives.asymmetric.ed25519", extra="audit")


def _serialization() -> Any:
    return require("cryptography.hazmat.primitives.serialization", extra="audit")
