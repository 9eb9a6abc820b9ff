"""Opens Wattlock's containers, records and folders of segments without Wattlock.

This file is all that is needed besides Python 3.9 and the package `cryptography`, 42 or newer:
copy it anywhere and run it. It was written from the specifications alone. It reads wattlock v1,
age v1 (armored or not), records and stream v2, and writes none of them.

    python reader.py -i keys.txt -o report.pdf report.pdf.wlk
    python reader.py -i keys.txt logs > messages
    python reader.py --key-file key logs/000007.wls > messages

Segments of stream v2 stand alone: what is wrong with one is reported at the end, and keeps no other
from standard output. With `-o` there is all or nothing, as with a container.

Keys: X25519, ssh-ed25519, ssh-rsa, passphrases, and age's post-quantum keys where `cryptography`
has HPKE with ML-KEM (47 or newer). A plugin's keys need the program.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import dataclasses
import errno
import getpass
import hashlib
import hmac
import io
import mmap
import os
import re
import signal
import sys
import tempfile
import warnings
import zlib
from dataclasses import dataclass
from typing import (
    BinaryIO,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NoReturn,
    Optional,
    Set,
    Tuple,
    Union,
)

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAX_HEADER = 1 << 20
MAX_STANZAS = 1024
MAX_WORK_FACTOR = 22
MAX_MESSAGE = 64 << 20
MAX_SHOWN_FAULTS = 10
MAX_ARMOR_WHITESPACE = 1024
MAX_IDENTITY_FILE = 1 << 20
TAG = 16
MAX_RECORD = 29 + MAX_MESSAGE + TAG


class ReaderError(Exception):
    """Something was not opened. Its text holds no secret."""


class WrongKey(ReaderError):
    """None of the keys opens it."""


class Damaged(ReaderError):
    """It was changed, cut off or made wrongly."""


class NotAContainer(ReaderError):
    """It is no container, record or segment, or of a version that this reader does not know."""


# Containers


def open_container(
    file: BinaryIO,
    identities: Iterable[Union[str, Identity]],
    passphrase: Optional[str] = None,
    max_work_factor: int = MAX_WORK_FACTOR,
) -> Container:
    """Returns the container that starts where the file stands. Its header is checked already.

    An identity is a text, `AGE-SECRET-KEY-1…`, or one of those that `read_identities` returns.
    """
    keys = [parse_identity(key) if isinstance(key, str) else key for key in identities]
    if passphrase is not None:
        keys.append(PassphraseIdentity(passphrase, max_work_factor))
    source = open_source(file)
    header = read_header(source)
    file_key = unwrap_file_key(header.stanzas, keys)
    if header.version == AGE:
        check_mac(header, hkdf_sha256(file_key, b"", b"header"))
        return Container(open_stream(source, file_key), None)
    check_mac(header, hkdf_sha256(file_key, b"", b"wattlock/v1 header"))
    data_key = open_data_key(header, file_key)
    return Container(open_cobblestone(source, data_key), open_metadata(header, data_key))


class Container:
    """An opened container. Iterating over it gives the plaintext, each chunk after its tag.

    The plaintext is whole only when the iteration ends without an exception.
    """

    def __init__(self, chunks: Iterator[bytes], metadata: Optional[Metadata]) -> None:
        self._chunks = chunks
        self.metadata = metadata

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)


@dataclass(frozen=True)
class Metadata:
    """What a wattlock header says of the file; None where it says nothing.

    Whoever made the container chose it: use the name only inside a folder of your choice.
    """

    name: Optional[bytes] = None
    mode: Optional[int] = None
    mtime_ns: Optional[int] = None
    has_holes: bool = False


def unwrap_file_key(stanzas: List[Entry], keys: List[Identity]) -> bytes:
    """Returns the file key that one of the stanzas holds for one of the keys."""
    for key in keys:
        for stanza in stanzas:
            file_key = key.unwrap(stanza)
            if file_key is not None:
                return file_key
    notes = sorted({key.note for key in keys if key.note})
    raise WrongKey("; ".join(["none of the keys opens it", *notes]))


def check_mac(header: Header, key: bytes) -> None:
    """Raises Damaged unless the header is what its MAC says."""
    if not hmac.compare_digest(hmac.new(key, header.text, hashlib.sha256).digest(), header.mac):
        raise Damaged("the header was changed: its MAC is wrong")


def open_data_key(header: Header, file_key: bytes) -> bytes:
    """Returns the data key that the field `data-key` holds."""
    if "data-key" not in header.fields:
        raise Damaged("the header has no field data-key")
    field = header.fields["data-key"]
    (salt,) = field.values(16)
    field.check_body(32 + TAG)
    key = hkdf_sha256(file_key, salt, b"wattlock/v1 data key")
    return aes_gcm_open(key, bytes(12), field.body, b"", "the data key")


def open_metadata(header: Header, data_key: bytes) -> Optional[Metadata]:
    """Returns what the field `metadata` says, or None if there is no such field."""
    if "metadata" not in header.fields:
        return None
    field = header.fields["metadata"]
    (salt,) = field.values(16)
    key = hkdf_expand(hashes.SHA512(), data_key, b"wattlock/v1 metadata\0" + salt, 32)
    entries = split_metadata(aes_gcm_open(key, bytes(12), field.body, b"", "the metadata"))
    return interpret_metadata(entries)


def split_metadata(text: bytes) -> Dict[int, bytes]:
    """Returns the value of each kind of entry."""
    entries: Dict[int, bytes] = {}
    rest = text
    while rest and rest[0] != 0:
        end = 3 + int.from_bytes(rest[1:3], "big")
        if end > len(rest) or (rest[0] <= 4 and rest[0] in entries):
            raise Damaged("the metadata is cut off, or says something twice")
        entries[rest[0]] = rest[3:end]
        rest = rest[end:]
    if any(rest) or len(text) % 64 != 0:
        raise Damaged("the metadata is padded wrongly")
    return entries


def interpret_metadata(entries: Dict[int, bytes]) -> Metadata:
    """Returns the metadata that has these entries."""
    lengths = {1: range(1, 256), 2: (4,), 3: (12,), 4: (0,)}
    if any(kind in lengths and len(entries[kind]) not in lengths[kind] for kind in entries):
        raise Damaged("the metadata has an entry of a wrong length")
    name, mode, time = entries.get(1), entries.get(2), entries.get(3)
    if name is not None and (b"/" in name or b"\0" in name or name in (b".", b"..")):
        raise Damaged("the metadata's name is not a file name")
    return Metadata(
        name=name,
        mode=None if mode is None else int.from_bytes(mode, "big") & 0o777,
        mtime_ns=None if time is None else parse_time(time),
        has_holes=4 in entries,
    )


def parse_time(value: bytes) -> int:
    """Returns nanoseconds since 1970."""
    nanoseconds = int.from_bytes(value[8:], "big")
    if nanoseconds >= 10**9:
        raise Damaged("the metadata's time has more than a second of nanoseconds")
    return int.from_bytes(value[:8], "big", signed=True) * 10**9 + nanoseconds


# Payloads


def open_cobblestone(source: Source, data_key: bytes) -> Iterator[bytes]:
    """Yields the plaintext of a payload of Cobblestone-256."""
    prefix = source.take(24 + 32)
    label = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0"
    info = label + prefix[:24] + b"wattlock/v1 payload"
    keys = hkdf_expand(hashes.SHA512(), data_key, info, 32 + 12 + 32)
    if not hmac.compare_digest(keys[44:], prefix[24:]):
        raise Damaged("the payload's commitment is wrong or cut off")
    base_nonce = int.from_bytes(keys[32:44], "big")
    for number in range(1 << 38):
        chunk = source.take(16384 + TAG)
        nonce = (base_nonce ^ number).to_bytes(12, "big")
        yield aes_gcm_open(keys[:32], nonce, chunk, b"", f"chunk {number}")
        if len(chunk) < 16384 + TAG:
            return
    raise Damaged("the payload has too many chunks")


def open_stream(source: Source, file_key: bytes) -> Iterator[bytes]:
    """Yields the plaintext of a payload of age."""
    nonce = source.take(16)
    if len(nonce) != 16:
        raise Damaged("the payload is cut off")
    cipher = ChaCha20Poly1305(hkdf_sha256(file_key, nonce, b"payload"))
    number = 0
    is_last = False
    while not is_last:
        chunk = source.take(65536 + TAG)
        is_last = source.at_end()
        if len(chunk) < TAG or (len(chunk) == TAG and number > 0):
            raise Damaged("the payload is cut off")
        try:
            plaintext = cipher.decrypt(number.to_bytes(11, "big") + bytes([is_last]), chunk, None)
        except InvalidTag:
            raise Damaged(f"chunk {number} was changed or cut off") from None
        yield plaintext
        number += 1


# Headers: the grammar of https://c2sp.org/age#abnf-definition-of-file-header, with fields

ENTRY = rb"([!-~]+(?: [!-~]+)*)\n((?:[A-Za-z0-9+/]{64}\n)*[A-Za-z0-9+/]{0,63}\n)"
STANZAS = rb"(?:-> " + ENTRY + rb")+"
FIELDS = rb"(?:=> " + ENTRY + rb")*"
MAC = rb"--- ([A-Za-z0-9+/]{43})\n"
WATTLOCK = b"wattlock/v1\n"
AGE = b"age-encryption.org/v1\n"
HEADERS = {
    WATTLOCK: re.compile(WATTLOCK + STANZAS + FIELDS + MAC),
    AGE: re.compile(AGE + STANZAS + MAC),
}


@dataclass
class Entry:
    """A stanza or a field: its kind, its arguments after that, and its body."""

    kind: str
    arguments: List[str]
    body: bytes

    def values(self, *lengths: int) -> List[bytes]:
        """Returns the arguments, which have to be base64 of values of these lengths."""
        values = [decode_base64(argument) for argument in self.arguments]
        if [len(value) for value in values] != list(lengths):
            raise Damaged(f"{self.kind} has wrong arguments")
        return values

    def check_body(self, length: int) -> None:
        """Raises Damaged unless the body has this length."""
        if len(self.body) != length:
            raise Damaged(f"{self.kind} has a body of a wrong length")


@dataclass
class Header:
    """A header of which nothing but its form was checked."""

    version: bytes
    stanzas: List[Entry]
    fields: Dict[str, Entry]
    text: bytes
    mac: bytes


def read_header(source: Source) -> Header:
    """Returns the header with which the source starts."""
    version = source.line(64)
    if version not in HEADERS:
        raise NotAContainer("not a container of a version that this reader knows")
    text = read_header_text(source, version)
    match = HEADERS[version].fullmatch(text)
    if match is None:
        raise Damaged("the header is malformed")
    stanzas = find_entries(b"-> ", text)
    check_stanzas(stanzas)
    fields = find_entries(b"=> ", text)
    if len({field.kind for field in fields}) != len(fields):
        raise Damaged("a field stands twice in the header")
    by_kind = {field.kind: field for field in fields}
    mac = decode_base64(match.groups()[-1].decode())
    return Header(version, stanzas, by_kind, text[: text.rindex(b"--- ") + 3], mac)


def read_header_text(source: Source, version: bytes) -> bytes:
    """Returns the header up to the end of the line that starts with `---`."""
    text = bytearray(version)
    line = b""
    while not line.startswith(b"---"):
        line = source.line(MAX_HEADER - len(text))
        if not line.endswith(b"\n"):
            raise Damaged("the header does not end, or not within 1 MiB")
        text += line
    return bytes(text)


def find_entries(mark: bytes, text: bytes) -> List[Entry]:
    """Returns the entries of a well-formed header whose lines start with the mark."""
    entries = []
    for line, body in re.findall(b"^" + mark + ENTRY, text, re.MULTILINE):
        kind, *arguments = line.decode().split(" ")
        entries.append(Entry(kind, arguments, decode_base64(body.decode().replace("\n", ""))))
    return entries


def check_stanzas(stanzas: List[Entry]) -> None:
    """Raises an error if there are too many, or a passphrase among others."""
    if len(stanzas) > MAX_STANZAS:
        raise ReaderError(f"the header has more than {MAX_STANZAS} recipients")
    if len(stanzas) > 1 and any(stanza.kind == "scrypt" for stanza in stanzas):
        raise Damaged("the header has a passphrase beside another recipient")


def decode_base64(text: str) -> bytes:
    """Returns the bytes of canonical base64 without padding."""
    if "=" in text:
        raise Damaged("base64 with padding")
    return decode_padded_base64(text + "=" * (-len(text) % 4))


def decode_padded_base64(text: str) -> bytes:
    """Returns the bytes of canonical base64 with padding."""
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError:
        raise Damaged("base64 is malformed") from None
    if base64.b64encode(value).decode() != text:
        raise Damaged("base64 is not canonical")
    return value


# Keys


class Identity:
    """A key that opens containers."""

    note = ""
    """What the user should know if no key opens the container."""

    def unwrap(self, stanza: Entry) -> Optional[bytes]:
        """Returns the file key in the stanza, or None if the stanza is not for this key."""
        return None


class PluginIdentity(Identity):
    """A key `AGE-PLUGIN-…`, which opens nothing here."""

    note = "a plugin's key needs the program wattlock"


class X25519Identity(Identity):
    """A key `AGE-SECRET-KEY-1…`."""

    def __init__(self, secret: bytes) -> None:
        self._key = x25519.X25519PrivateKey.from_private_bytes(secret)

    def unwrap(self, stanza: Entry) -> Optional[bytes]:
        if stanza.kind != "X25519":
            return None
        (share,) = stanza.values(32)
        salt = share + self._key.public_key().public_bytes_raw()
        key = hkdf_sha256(exchange(self._key, share), salt, b"age-encryption.org/v1/X25519")
        return open_file_key(key, stanza)


class PostQuantumIdentity(Identity):
    """A key `AGE-SECRET-KEY-PQ-1…`: ML-KEM-768 and X25519 together."""

    def __init__(self, seed: bytes) -> None:
        self._seeds = hashlib.shake_256(seed).digest(64 + 32)

    def unwrap(self, stanza: Entry) -> Optional[bytes]:
        if stanza.kind != "mlkem768x25519":
            return None
        (encapsulated,) = stanza.values(1088 + 32)
        stanza.check_body(16 + TAG)
        key = x25519.X25519PrivateKey.from_private_bytes(self._seeds[64:])
        exchange(key, encapsulated[1088:])
        try:
            return self._open(key, encapsulated + stanza.body)
        except InvalidTag:
            return None
        except (ImportError, AttributeError, UnsupportedAlgorithm):
            raise ReaderError("a post-quantum key needs `cryptography` 47 or newer") from None

    def _open(self, key: x25519.X25519PrivateKey, sealed: bytes) -> bytes:
        from cryptography.hazmat.primitives import hpke
        from cryptography.hazmat.primitives.asymmetric import mlkem

        mlkem_key = mlkem.MLKEM768PrivateKey.from_seed_bytes(self._seeds[:64])
        both = hpke.MLKEM768X25519PrivateKey(mlkem_key, key)
        ciphers = hpke.KDF.HKDF_SHA256, hpke.AEAD.CHACHA20_POLY1305
        suite = hpke.Suite(hpke.KEM.MLKEM768_X25519, *ciphers)
        return suite.decrypt(sealed, both, b"age-encryption.org/mlkem768x25519")


class PassphraseIdentity(Identity):
    """A passphrase."""

    def __init__(self, passphrase: str, max_work_factor: int) -> None:
        self._passphrase = passphrase.encode()
        self._max_work_factor = min(max_work_factor, 40)  # a pebibyte; more overflows in libraries

    def unwrap(self, stanza: Entry) -> Optional[bytes]:
        if stanza.kind != "scrypt":
            return None
        stanza.check_body(16 + TAG)
        salt, factor = stanza.arguments if len(stanza.arguments) == 2 else ("", "")
        if len(decode_base64(salt)) != 16 or not re.fullmatch("[1-9][0-9]*", factor):
            raise Damaged("the passphrase's salt or work factor is malformed")
        if len(factor) > 2 or int(factor) > self._max_work_factor:
            raise ReaderError(f"the passphrase's work factor is above {self._max_work_factor}")
        return open_file_key(self._derive(decode_base64(salt), 1 << int(factor)), stanza)

    def _derive(self, salt: bytes, work: int) -> bytes:
        salt = b"age-encryption.org/v1/scrypt" + salt
        try:
            return Scrypt(salt=salt, length=32, n=work, r=8, p=1).derive(self._passphrase)
        except MemoryError:
            raise ReaderError("not enough memory for the passphrase's work factor") from None


class SshEd25519Identity(Identity):
    """An SSH key of type ssh-ed25519."""

    def __init__(self, key: ed25519.Ed25519PrivateKey) -> None:
        secret = hashlib.sha512(key.private_bytes_raw()).digest()[:32]
        self._key = x25519.X25519PrivateKey.from_private_bytes(secret)
        self._public = ssh_public_key(key)

    def unwrap(self, stanza: Entry) -> Optional[bytes]:
        if stanza.kind != "ssh-ed25519":
            return None
        fingerprint, share = stanza.values(4, 32)
        if fingerprint != hashlib.sha256(self._public).digest()[:4]:
            return None
        info = b"age-encryption.org/v1/ssh-ed25519"
        tweak = x25519.X25519PrivateKey.from_private_bytes(hkdf_sha256(b"", self._public, info))
        secret = exchange(tweak, exchange(self._key, share))
        salt = share + self._key.public_key().public_bytes_raw()
        return open_file_key(hkdf_sha256(secret, salt, info), stanza)


class SshRsaIdentity(Identity):
    """An SSH key of type ssh-rsa."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key = key
        self._fingerprint = hashlib.sha256(ssh_public_key(key)).digest()[:4]

    def unwrap(self, stanza: Entry) -> Optional[bytes]:
        if stanza.kind != "ssh-rsa" or stanza.values(4) != [self._fingerprint]:
            return None
        sha256 = hashes.SHA256()
        oaep = padding.OAEP(padding.MGF1(sha256), sha256, b"age-encryption.org/v1/ssh-rsa")
        try:
            file_key = self._key.decrypt(stanza.body, oaep)
        except ValueError:
            return None
        return file_key if len(file_key) == 16 else None


def ssh_public_key(key: Union[ed25519.Ed25519PrivateKey, rsa.RSAPrivateKey]) -> bytes:
    """Returns the key's public half as SSH sends it."""
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return base64.b64decode(key.public_key().public_bytes(*form).split(b" ")[1])


def exchange(key: x25519.X25519PrivateKey, share: bytes) -> bytes:
    """Returns the secret that the key and the share make."""
    try:
        return key.exchange(x25519.X25519PublicKey.from_public_bytes(share))
    except ValueError:
        raise Damaged("a recipient's share is of low order") from None


def open_file_key(key: bytes, stanza: Entry) -> Optional[bytes]:
    """Returns the file key in the stanza, or None if the key does not open it."""
    stanza.check_body(16 + TAG)
    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), stanza.body, None)
    except InvalidTag:
        return None


# Files of keys


def read_identities(data: bytes, ask: Callable[[], str]) -> List[Identity]:
    """Returns the keys in a file of keys: an SSH key, or lines with a secret key each.

    If the file is encrypted with a passphrase, as by `age -p`, it calls `ask` for that.
    """
    if data.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----"):
        return [read_ssh_key(data)]
    if data.startswith((WATTLOCK, AGE, ARMOR_BEGIN)):
        data = b"".join(open_container(io.BytesIO(data), [], ask()))
    lines = [line.strip().decode("ascii", "replace") for line in data.splitlines()]
    keys = [
        parse_identity(line, f"line {number}")
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#")
    ]
    if not keys:
        raise ReaderError("there is no key in it")
    return keys


def read_ssh_key(data: bytes) -> Identity:
    """Returns the key in a private key file of OpenSSH."""
    try:
        key = serialization.load_ssh_private_key(data, None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        hint = "ssh-keygen -p takes the passphrase from a copy"
        raise ReaderError(f"the SSH key has a passphrase or is malformed; {hint}") from None
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return SshEd25519Identity(key)
    if isinstance(key, rsa.RSAPrivateKey):
        return SshRsaIdentity(key)
    raise ReaderError("an SSH key of another type than ssh-ed25519 and ssh-rsa")


def parse_identity(text: str, what: str = "an identity") -> Identity:
    """Returns the key that the text says; an error calls the text what `what` says."""
    prefix, secret = decode_bech32(text) if text.isupper() else ("", b"")
    if prefix.startswith("age-plugin-"):
        return PluginIdentity()
    if prefix == "age-secret-key-" and len(secret) == 32:
        return X25519Identity(secret)
    if prefix == "age-secret-key-pq-" and len(secret) == 32:
        return PostQuantumIdentity(secret)
    raise ReaderError(f"{what} is not a secret key that this reader knows")


def decode_bech32(text: str) -> Tuple[str, bytes]:
    """Returns prefix and value of Bech32 (BIP 173), both empty if it is malformed."""
    prefix, _, data = text.lower().rpartition("1")
    values = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".find(letter) for letter in data]
    high = [ord(letter) >> 5 for letter in prefix]
    low = [ord(letter) & 31 for letter in prefix]
    if -1 in values or len(values) < 6 or bech32_checksum([*high, 0, *low, *values]) != 1:
        return "", b""
    bits = "".join(f"{value:05b}" for value in values[:-6])
    whole = len(bits) // 8 * 8
    if len(bits) - whole > 4 or "1" in bits[whole:]:
        return "", b""
    return prefix, bytes(int(bits[i : i + 8], 2) for i in range(0, whole, 8))


def bech32_checksum(values: List[int]) -> int:
    """Returns 1 if the values end with the checksum of those before."""
    generators = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(generators):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum


# Records


def open_record(record: bytes, keys: Dict[int, bytes], additional_data: bytes = b"") -> bytes:
    """Returns the message in a record. `keys` has the session key of each epoch."""
    if record[:1] != b"\x01":
        raise NotAContainer("not a record of a version that this reader knows")
    if not 29 + TAG <= len(record) <= MAX_RECORD:
        raise Damaged("the record has a wrong length")
    head, epoch, writer, counter = record[:29], record[1:5], record[5:21], record[21:29]
    session_key = keys.get(int.from_bytes(epoch, "big"))
    if session_key is None:
        raise WrongKey("there is no key for the record's epoch")
    if len(session_key) != 32:
        raise ReaderError("a session key has 32 bytes")
    info = b"wattlock/v1 record" + epoch + writer
    key = hkdf_expand(hashes.SHA256(), session_key, info, 32)
    return aes_gcm_open(key, bytes(4) + counter, record[29:], head + additional_data, "the record")


# Stream v2: messages in segments, a folder of which has the keys beside them

SEGMENT = b"wattlock-stream/v2\n"
SEGMENT_NAME = re.compile(r"([0-9]{6,})\.wls")
END, CUT = b"wls2end\n", b"wls2cut\n"
PathLike = Union[str, "os.PathLike[str]"]
Fits = Callable[[bytes], bool]
MAX_KEYS_BESIDE = 16


@dataclass(frozen=True)
class Messages:
    """Whole messages that came at once from one source, and whose tag was right.

    `framing` says how `data` is split into messages: 0 not at all, so that bytes of a source follow
    each other; 1 a newline ends each message; 2 a length of four bytes stands before each.
    """

    data: bytes
    source: str
    time_us: int
    framing: int
    tenant: Optional[str]


def open_segments(
    paths: Union[PathLike, Iterable[PathLike]],
    identities: Iterable[Union[str, Identity]] = (),
    shared_key: Optional[bytes] = None,
    passphrase: Optional[str] = None,
    max_work_factor: int = MAX_WORK_FACTOR,
) -> Iterator[Messages]:
    """Yields all messages in a folder of segments, or in those segments that are named, in order.

    The keys are in a folder `keys` beside the segments: identities and the passphrase open its
    containers, the shared key goes with its salts. Segments stand alone: what is wrong with one is
    raised at the end, after all messages of the others. The messages are whole only when the
    iteration ends without an exception, and even then may lack the oldest and the latest segments.
    """
    if shared_key is not None and len(shared_key) != 32:
        raise ReaderError("a shared key has 32 bytes")
    parsed = [parse_identity(key) if isinstance(key, str) else key for key in identities]
    keys = SessionKeys(parsed, shared_key, passphrase, max_work_factor)
    return read_segments(find_segments(paths), keys)


def find_segments(paths: Union[PathLike, Iterable[PathLike]]) -> List[str]:
    """Returns the paths of the segments, those of a folder in the order of their numbers."""
    found: List[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = os.fspath(path)
        if not os.path.isdir(path):
            found.append(path)
            continue
        names = [name for name in os.listdir(path) if SEGMENT_NAME.fullmatch(name)]
        if not names:
            raise NotAContainer(f"{path}: there is no segment in it")
        names.sort(key=lambda name: (int(name[: -len(".wls")]), name))
        found += [os.path.join(path, name) for name in names]
    return found


def read_segments(paths: List[str], keys: SessionKeys) -> Iterator[Messages]:
    """Yields the messages of the segments, and raises at the end what is wrong with any."""
    checks = FolderChecks()
    for path in paths:
        with checks.collect(path), open(path, "rb") as file:
            yield from read_segment(file, path, keys, checks)
    checks.finish()


def read_segment(
    file: BinaryIO, path: str, keys: SessionKeys, checks: FolderChecks
) -> Iterator[Messages]:
    """Yields the messages of one segment."""
    is_written = is_locked(file)  # before its size: a segment that ends now is not cut
    size = file.seek(0, os.SEEK_END)
    if not has_header(file, size):
        return  # the writer was killed before its first record
    folder = os.path.dirname(path)
    segment = Segment(file, size, lambda epoch, fits: keys.find(folder, epoch, fits))
    contents = Contents(segment.tenant, checks)
    for payloads in segment.batches():
        contents.begin_batch(segment.valid, segment.counter)
        for payload in payloads:
            messages = contents.read(payload)
            if messages is not None:
                yield messages
        if contents.has_index:
            break
    segment.check_tail()
    if contents.has_index:
        return
    if not is_written:
        segment.check_behind()
    if segment.tail == END:
        raise Damaged("it has an end and no index")
    if not is_written:
        checks.add_unfinished(segment.writer, segment.valid)


def is_locked(file: BinaryIO) -> bool:
    """True if a writer has locked the segment. Where there are no such locks, none has."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def has_header(file: BinaryIO, size: int) -> bool:
    """False if the header was not written to its end, or as zeros. Goes to the file's start."""
    file.seek(0)
    start = file.read(len(SEGMENT))
    file.seek(0)
    is_short = size < len(SEGMENT) + 4 + 16 + 2 + 32 + 4
    is_zero = len(start) == len(SEGMENT) and not any(start)
    return not (is_zero or (is_short and SEGMENT.startswith(start)))


class Segment:
    """The header, batches and tail of a segment. The header is checked already."""

    def __init__(self, file: BinaryIO, size: int, find_key: Callable[[int, Fits], bytes]) -> None:
        self._file = file
        self._bound, self._additional = self._read_header()
        self._epoch, self.writer = self._bound[:4], self._bound[4:]
        session_key = find_key(int.from_bytes(self._epoch, "big"), self._fits)
        self._key = hkdf_expand(
            hashes.SHA256(), session_key, b"wattlock/v1 record" + self._bound, 32
        )
        self.tenant = parse_tenant(self._additional)
        self.valid = file.tell()
        """The length of the header and the whole batches that were read."""
        self.counter = 0
        """The number of records that were read."""
        self._read_tail(size)

    def _read_header(self) -> Tuple[bytes, bytes]:
        """Returns epoch and writer ID, and the additional data; keeps the commitment."""
        if self._file.read(len(SEGMENT)) != SEGMENT:
            raise NotAContainer("not a segment of a version that this reader knows")
        bound, length = take(self._file, 4 + 16), take(self._file, 2)
        additional = take(self._file, int.from_bytes(length, "big"))
        self._commitment = take(self._file, 32)
        text = SEGMENT + bound + length + additional + self._commitment
        if zlib.crc32(text) != take_number(self._file, 4):
            raise Damaged("the checksum of its header is wrong")
        return bound, additional

    def _fits(self, session_key: bytes) -> bool:
        """True if the segment commits to this key."""
        info = b"wattlock-stream/v2 commitment" + self._bound + self._additional
        commitment = hkdf_expand(hashes.SHA256(), session_key, info, 32)
        return hmac.compare_digest(commitment, self._commitment)

    def _read_tail(self, size: int) -> None:
        """Finds the tail, which may be missing, and where the batches have to end."""
        self._named_end, self._end, self.tail = size, size, b""
        self._behind = size
        """Where looking for batches behind those that follow each other ends."""
        if size < self.valid + 16:
            return
        self._file.seek(size - 16)
        offset, tail = take_number(self._file, 8), take(self._file, 8)
        if tail in (END, CUT):
            self._named_end = offset if tail == CUT else size - 16
            self._end, self.tail = min(self._named_end, size - 16), tail
            self._behind = size - 16

    def batches(self) -> Iterator[Iterator[bytes]]:
        """Yields the payloads of each whole batch; they have to be read before the next."""
        end = self._find_batch()
        while end is not None:
            yield self._payloads(end)
            end = self._find_batch()

    def _payloads(self, end: int) -> Iterator[bytes]:
        """Yields the payload of each record up to the end of the batch, after its tag."""
        for record in self._records(end):
            yield self._open(record, self.counter)
            self.counter += 1
        self.valid = end

    def _find_batch(self) -> Optional[int]:
        """Returns the end of the next batch, None if it is not whole; goes to its first record."""
        self._file.seek(self.valid)
        length, checksum = self._file.read(4), self._file.read(4)
        start = self.valid + 8
        end = start + int.from_bytes(length, "big")
        if not start < end <= self._end:
            return None
        computed = zlib.crc32(self.writer + length)
        for at in range(start, end, 65536):
            computed = zlib.crc32(self._file.read(min(65536, end - at)), computed)
        self._file.seek(start)
        return end if computed == int.from_bytes(checksum, "big") else None

    def _records(self, end: int) -> Iterator[bytes]:
        """Yields the records up to the end of the batch."""
        while self._file.tell() < end:
            length = take_varint(self._file)
            if length > end - self._file.tell():
                raise Damaged("a record is longer than its batch")
            yield take(self._file, length)

    def _open(self, record: bytes, counter: int) -> bytes:
        """Returns the payload of the record, which has to be the one with this counter."""
        head = b"\x01" + self._epoch + self.writer + counter.to_bytes(8, "big")
        if record[:29] != head:
            raise Damaged(f"record {counter} is not at its place, or was changed")
        nonce, bound = bytes(4) + head[21:], head + self._additional
        return aes_gcm_open(self._key, nonce, record[29:], bound, f"record {counter}")

    def check_tail(self) -> None:
        """Raises Damaged unless the batches that were read end where the tail says."""
        if self.tail == END and self.valid != self._named_end:
            raise Damaged("bytes before its end are no batch, or behind its index")
        if self.tail == CUT and self.valid != self._named_end:
            raise Damaged("it has not the length that its tail names")


    def check_behind(self) -> None:
        """Raises Damaged if a whole batch follows where none does: no crash tore that."""
        start = b"\x01" + self._epoch + self.writer
        self._file.seek(self.valid)
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(start, self.valid, self._behind)
            while at >= 0:
                for batch in range(at - 9, at - 13, -1):
                    if batch >= self.valid and self._is_whole(data, batch, start):
                        raise Damaged(f"it is damaged at byte {self.valid}, and more follows")
                at = data.find(start, at + 1, self._behind)

    def _is_whole(self, data: mmap.mmap, at: int, start: bytes) -> bool:
        """True if a batch of this segment is at this place."""
        length, checksum = data[at : at + 4], data[at + 4 : at + 8]
        batch = io.BytesIO(data[at + 8 : at + 8 + int.from_bytes(length, "big")])
        size = len(batch.getvalue())
        if not size or at + 8 + size > self._behind or size != int.from_bytes(length, "big"):
            return False
        try:
            while batch.tell() < size:
                record = take(batch, take_varint(batch))
                if len(record) < 29 + TAG or not record.startswith(start):
                    return False
        except ReaderError:
            return False
        text = self.writer + length + batch.getvalue()
        return zlib.crc32(text) == int.from_bytes(checksum, "big")


class Contents:
    """What the records of a segment say; they have to come in order."""

    def __init__(self, tenant: Optional[str], checks: FolderChecks) -> None:
        self._tenant = tenant
        self._checks = checks
        self._begun: Set[int] = set()
        self._sources: Dict[int, Tuple[int, str]] = {}
        self._all_sources: Dict[int, Tuple[int, str]] = {}
        self._batches: List[Batch] = []
        self._has_start = False
        self._is_closed = False
        self.has_index = False

    def begin_batch(self, offset: int, counter: int) -> None:
        """Takes note of a batch at this place, whose first record has this counter."""
        self._batches.append(Batch(offset, counter))

    def read(self, payload: bytes) -> Optional[Messages]:
        """Returns the messages in the payload; None if it says something else."""
        fields = io.BytesIO(payload)
        kind = take_number(fields, 1)
        if self.has_index or (kind == 0) == self._has_start:
            raise Damaged("a record is not at its place")
        if kind >= 128:
            return None  # later writers may add them
        if self._is_closed and kind != 5:
            raise Damaged("a record follows the one that closes the segment")
        messages = self._read_kind(kind, fields)
        if fields.read(1):
            raise Damaged("a record is longer than what it says")
        return messages

    def _read_kind(self, kind: int, fields: BinaryIO) -> Optional[Messages]:
        readers: List[Callable[[BinaryIO], Optional[Messages]]] = [
            self._start,
            self._begin,
            self._messages,
            self._end,
            self._close,
            self._index,
        ]
        if kind >= len(readers):
            raise Damaged(f"a record has the unknown kind {kind}")
        return readers[kind](fields)

    def _start(self, fields: BinaryIO) -> None:
        run, number = take(fields, 16), take_varint(fields)
        pairs = range(take_varint(fields))
        recovered = [(take(fields, 16), take_number(fields, 8)) for _ in pairs]
        self._has_start = True
        self._checks.add_start(run, number, recovered)

    def _begin(self, fields: BinaryIO) -> None:
        source = take_varint(fields)
        framing = take_choice(fields, 3)
        take_choice(fields, 2)
        if source in self._begun:
            raise Damaged("a source begins twice")
        self._begun.add(source)
        self._sources[source] = (framing, decode_name(fields.read()))
        self._all_sources[source] = self._sources[source]

    def _messages(self, fields: BinaryIO) -> Messages:
        source = take_varint(fields)
        framing, name = self._source(source)
        time_us = take_number(fields, 8)
        self._batches[-1].add(source, time_us)
        return Messages(fields.read(), name, time_us, framing, self._tenant)

    def _end(self, fields: BinaryIO) -> None:
        source = take_varint(fields)
        self._source(source)
        take_choice(fields, 3)
        del self._sources[source]

    def _source(self, number: int) -> Tuple[int, str]:
        """Returns framing and name of a source that began and did not end."""
        if number not in self._sources:
            raise Damaged("a source that did not begin, or ended, has messages or an end")
        return self._sources[number]

    def _close(self, fields: BinaryIO) -> None:
        take_choice(fields, 2)
        self._is_closed = True

    def _index(self, fields: BinaryIO) -> None:
        """Reads the index, which has to say what was read."""
        sources = {}
        for _ in range(take_varint(fields)):
            source, framing = take_varint(fields), take_choice(fields, 3)
            sources[source] = (framing, decode_name(take(fields, take_varint(fields))))
        blocks = [self._block(fields) for _ in range(take_varint(fields))]
        self.has_index = True
        if sources != self._all_sources or blocks != self._blocks([one.offset for one in blocks]):
            raise Damaged("its index does not fit its records")

    def _blocks(self, offsets: List[int]) -> List[Batch]:
        """Returns the blocks that were read, if they begin at these places."""
        blocks: List[Batch] = []
        for batch in self._batches[:-1]:  # the last is that of the index
            if not blocks or (len(blocks) < len(offsets) and offsets[len(blocks)] <= batch.offset):
                blocks.append(Batch(batch.offset, batch.counter))
            blocks[-1].join(batch)
        return blocks

    def _block(self, fields: BinaryIO) -> Batch:
        """Reads a block of the index."""
        block = Batch(take_varint(fields), take_varint(fields))
        block.earliest, block.latest = take_number(fields, 8), take_number(fields, 8)
        last = -1
        for _ in range(take_varint(fields)):
            source = take_varint(fields)
            if source <= last:
                raise Damaged("the sources of a block are not ascending")
            last = source
            block.sources.add(source)
        return block


@dataclass
class Batch:
    """A batch, or a block of them, as the index describes it."""

    offset: int
    counter: int
    earliest: int = 2**64 - 1
    latest: int = 0
    sources: Set[int] = dataclasses.field(default_factory=set)

    def add(self, source: int, time_us: int) -> None:
        """Takes note of messages in it."""
        self.earliest, self.latest = min(self.earliest, time_us), max(self.latest, time_us)
        self.sources.add(source)

    def join(self, other: "Batch") -> None:
        """Takes note of a batch in the block."""
        self.earliest, self.latest = (
            min(self.earliest, other.earliest),
            max(self.latest, other.latest),
        )
        self.sources |= other.sources


class FolderChecks:
    """What is wrong with segments, and what only all of them together show."""

    def __init__(self) -> None:
        self._faults: List[ReaderError] = []
        self._path, self._position = "", 0
        self._numbers: Dict[bytes, Set[int]] = {}
        self._recovered: Dict[Tuple[bytes, int], int] = {}
        self._unfinished: List[Tuple[str, int, Tuple[bytes, int], Tuple[bytes, int]]] = []
        self._start = (b"", 0)

    @contextlib.contextmanager
    def collect(self, path: str) -> Iterator[None]:
        """Keeps for later what is wrong with the segment of this path, the next one."""
        self._path, self._start = path, (b"", 0)
        self._position += 1
        try:
            yield
        except ReaderError as error:
            self._add(error, path)

    def _add(self, error: ReaderError, path: str) -> None:
        self._faults.append(type(error)(f"{path}: {error}"))

    def add_start(self, run: bytes, number: int, recovered: List[Tuple[bytes, int]]) -> None:
        """Takes note of a start; raises Damaged if there was one of the same run and number."""
        numbers = self._numbers.setdefault(run, set())
        if number in numbers:
            raise Damaged("another segment has the same run and number")
        numbers.add(number)
        self._start = (run, number)
        for writer_and_length in recovered:
            self._recovered[writer_and_length] = self._position

    def add_unfinished(self, writer: bytes, length: int) -> None:
        """Takes note of a segment without an end, which a later start has to name."""
        self._unfinished.append((self._path, self._position, (writer, length), self._start))

    def finish(self) -> None:
        """Raises what is wrong."""
        for path, position, writer_and_length, (run, number) in self._unfinished:
            # A writer that was killed in a segment made none after it.
            is_last = number == max(self._numbers.get(run, {number}))
            if not is_last or self._recovered.get(writer_and_length, 0) <= position:
                self._add(Damaged("it is cut off, and no later segment names it"), path)
        for numbers in self._numbers.values():
            if len(numbers) != max(numbers) - min(numbers) + 1:
                self._faults.append(Damaged("a segment is missing between two others of its run"))
        if self._faults:
            self._raise()

    def _raise(self) -> NoReturn:
        is_key = all(isinstance(fault, WrongKey) for fault in self._faults)
        shown = [str(fault) for fault in self._faults[:MAX_SHOWN_FAULTS]]
        if len(self._faults) > len(shown):
            shown.append(f"and {len(self._faults) - len(shown)} more")
        raise (WrongKey if is_key else Damaged)("; ".join(shown))


class SessionKeys:
    """Finds the session keys of segments."""

    def __init__(
        self,
        identities: List[Identity],
        shared_key: Optional[bytes],
        passphrase: Optional[str],
        max_work_factor: int,
    ) -> None:
        self._shared_key = shared_key
        self._for_containers = (identities, passphrase, max_work_factor)
        self._can_open_containers = bool(identities) or passphrase is not None
        self._found: Dict[str, Union[bytes, ReaderError, None]] = {}

    def find(self, folder: str, epoch: int, fits: Fits) -> bytes:
        """Returns the key of a segment: that of the first file of its epoch whose key fits."""
        path = os.path.join(folder, "keys", f"{epoch:06}")
        problem: Optional[ReaderError] = None
        for number in range(MAX_KEYS_BESIDE + 1):
            found = self._key_in(path, f".{number}" if number else "")
            if isinstance(found, bytes):
                if fits(found):
                    return found
                found = Damaged("its key is another, or its header was changed")
            problem = problem or found
        problem = problem or WrongKey("there is no key, or none that these keys open")
        raise type(problem)(f"{path}: {problem}")

    def _key_in(self, path: str, suffix: str) -> Union[bytes, ReaderError, None]:
        """Returns the key in a file, or what is wrong with it; None if there is none."""
        name = path + suffix
        if name not in self._found:
            try:
                self._found[name] = self._read(path, suffix)
            except ReaderError as error:
                self._found[name] = error
        return self._found[name]

    def _read(self, path: str, suffix: str) -> Optional[bytes]:
        salt_path, container_path = path + ".salt" + suffix, path + ".key" + suffix
        if self._shared_key is not None and os.path.exists(salt_path):
            with open(salt_path, "rb") as file:
                salt = file.read(33)
            if len(salt) != 32:
                raise Damaged("a salt of a wrong length")
            info = b"wattlock-stream/v2 session" + salt
            return hkdf_expand(hashes.SHA256(), self._shared_key, info, 32)
        if self._can_open_containers and os.path.exists(container_path):
            with open(container_path, "rb") as file:
                key = next(open_container(file, *self._for_containers))
            if len(key) != 32:
                raise Damaged("a session key of a wrong length")
            return key
        return None


def parse_tenant(additional: bytes) -> Optional[str]:
    """Returns the tenant in the additional data of a segment, None if they are empty."""
    if not additional:
        return None
    fields = io.BytesIO(additional)
    if take(fields, 2) != b"\x01\x01":
        raise Damaged("its additional data are not a tenant")
    tenant = decode_name(take(fields, take_number(fields, 2)))
    if fields.read(1):
        raise Damaged("its additional data are longer than the tenant")
    return tenant


def decode_name(name: bytes) -> str:
    """Returns the text of UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise Damaged("a name is not UTF-8") from None


def take(file: BinaryIO, length: int) -> bytes:
    """Returns the next bytes, of which there have to be so many."""
    data = b"" if length > MAX_RECORD else file.read(length)
    if len(data) != length:
        raise Damaged("it is cut off, or a length in it is wrong")
    return data


def take_number(file: BinaryIO, length: int) -> int:
    """Returns the next number of so many bytes."""
    return int.from_bytes(take(file, length), "big")


def take_choice(file: BinaryIO, limit: int) -> int:
    """Returns the next byte, which has to be below the limit."""
    value = take_number(file, 1)
    if value >= limit:
        raise Damaged("a record has an unknown framing, reason or flag")
    return value


def take_varint(file: BinaryIO) -> int:
    """Returns the next number in unsigned LEB128, which has to be in its shortest form."""
    value = 0
    for shift in range(0, 70, 7):
        byte = take_number(file, 1)
        value |= (byte & 127) << shift
        if byte < 128:
            break
    if byte >= 128 or value >> 64 or (byte == 0 and shift > 0):
        raise Damaged("a number is longer than it has to be, or too large")
    return value



# Ciphers


def hkdf_sha256(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """Returns a key of 32 bytes."""
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def hkdf_expand(hash_: hashes.HashAlgorithm, key: bytes, info: bytes, length: int) -> bytes:
    """Returns as many bytes as `length` says."""
    return HKDFExpand(hash_, length, info).derive(key)


def aes_gcm_open(key: bytes, nonce: bytes, sealed: bytes, associated: bytes, what: str) -> bytes:
    """Returns the plaintext; an error calls it what `what` says."""
    if len(sealed) >= TAG:
        with contextlib.suppress(InvalidTag):
            return AESGCM(key).decrypt(nonce, sealed, associated)
    raise Damaged(f"{what} was changed or cut off")


# Input

ARMOR_BEGIN = b"-----BEGIN AGE ENCRYPTED FILE-----"
ARMOR_END = b"-----END AGE ENCRYPTED FILE-----"


def open_source(file: BinaryIO) -> Source:
    """Returns the file's bytes, without the armor if it has one."""
    source = Source(iter(lambda: file.read(65536), b""))
    start = source.peek(MAX_ARMOR_WHITESPACE + len(ARMOR_BEGIN))
    text = start.lstrip()
    space = start[: len(start) - len(text)]
    if not text.startswith(ARMOR_BEGIN) or space[-1:] not in (b"", b"\n"):
        return source
    source.take(len(space))
    return Source(dearmor(source))


def dearmor(source: Source) -> Iterator[bytes]:
    """Yields what the lines between the armor's first and last line encode."""
    if armor_line(source) != ARMOR_BEGIN:
        raise NotAContainer("the armor's first line is malformed")
    line = armor_line(source)
    is_full = True
    while line != ARMOR_END:
        if not is_full or not 1 <= len(line) <= 64:
            raise Damaged("the armor has a line of a wrong length, or is cut off")
        value = decode_padded_base64(line.decode("ascii", "replace"))
        is_full = len(value) == 48
        yield value
        line = armor_line(source)
    while not source.at_end():
        if source.take(65536).strip():
            raise Damaged("something stands behind the armor")


def armor_line(source: Source) -> bytes:
    """Returns the next line without its end, which may be CRLF; empty at the end."""
    line = source.line(128)
    line = line[:-1] if line.endswith(b"\n") else line
    return line[:-1] if line.endswith(b"\r") else line


class Source:
    """A sequence of bytes, of which only a piece is in memory at a time."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._buffer = bytearray()

    def peek(self, length: int) -> bytes:
        """Returns the next bytes, which stay; fewer only at the end."""
        while len(self._buffer) < length:
            block = next(self._blocks, b"")
            if not block:
                break
            self._buffer += block
        return bytes(self._buffer[:length])

    def take(self, length: int) -> bytes:
        """Returns the next bytes; fewer only at the end."""
        taken = self.peek(length)
        del self._buffer[: len(taken)]
        return taken

    def line(self, limit: int) -> bytes:
        """Returns the next line with its end; without one if it is longer, or the last."""
        length = min(limit, 128)
        while b"\n" not in self.peek(length) and length < min(limit, len(self._buffer) + 1):
            length = min(limit, 2 * length)
        end = self._buffer.find(b"\n", 0, length)
        return self.take(end + 1 if end >= 0 else length)

    def at_end(self) -> bool:
        """True if nothing is left."""
        return not self.peek(1)


# Program


def main(arguments: Optional[List[str]] = None) -> int:
    """Returns the exit status of the program with these arguments."""
    options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    try:
        run(options)
        return 0
    except ReaderError as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except KeyboardInterrupt:
        message = "interrupted"
    print(f"reader: {message}", file=sys.stderr)
    return 1


def parse_arguments(arguments: List[str]) -> argparse.Namespace:
    """Returns the options; leaves the program with status 2 if they are wrong."""
    parser = argparse.ArgumentParser(
        prog="reader",
        description="Open a container of Wattlock or age, or sealed segments.",
        add_help=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=80),
    )
    add = parser.add_argument
    file_help = "Read this file, or folder of segments, instead of standard input"
    add("file", nargs="?", metavar="FILE", help=file_help)
    add("-i", action="append", default=[], metavar="IDENTITY", help="Use the keys in this file")
    add("-p", action="store_true", help="Ask for a passphrase")
    key_help = "Open segments with the shared key in this file"
    add("--key-file", metavar="KEY", help=key_help)
    add("-o", metavar="OUTPUT", help="Write to this file instead of standard output")
    add("-f", action="store_true", help="Replace OUTPUT if it exists")
    work_help = "Refuse a passphrase that costs more than 2^N"
    add("--max-work-factor", type=int, default=MAX_WORK_FACTOR, metavar="N", help=work_help)
    add("-h", "--help", action="help", help="Show this help")
    if any("AGE-SECRET-KEY-" in argument.upper() for argument in arguments):
        parser.error("a secret key is no argument: name a file that holds it")
    options = parser.parse_args(arguments)
    if not options.i and not options.p and options.key_file is None:
        parser.error("name a file of keys with -i, or use -p for a passphrase, or --key-file")
    return options


def run(options: argparse.Namespace) -> None:
    """Opens the container or the segments and writes what is in them."""
    output = None if options.o == "-" else options.o
    if output is not None:
        check_output(output, options.f)
    keys = [key for path in options.i for key in load_identities(path)]
    shared_key = None if options.key_file is None else load_shared_key(options.key_file)
    passphrase = ask_passphrase("Passphrase: ") if options.p else None
    if has_segments(options.file):
        limit = options.max_work_factor
        opened = open_segments(options.file, keys, shared_key, passphrase, limit)
        write_output((messages.data for messages in opened), output, options.f)
        return
    with open_input(options.file) as file:
        if not keys and passphrase is None:
            raise ReaderError("the shared key is for segments: name one, or their folder")
        container = open_container(file, keys, passphrase, options.max_work_factor)
        write_output(container, output, options.f)


def write_output(chunks: Iterable[bytes], output: Optional[str], force: bool) -> None:
    """Writes the plaintext to a file, or to standard output if there is none."""
    if output is not None:
        write_file(chunks, output, force)
        return
    with open(sys.stdout.fileno(), "wb", closefd=False) as stdout:
        stdout.writelines(chunks)


def has_segments(path: Optional[str]) -> bool:
    """True if it is a folder or a segment. A pipe is not: a look would take its bytes."""
    if path is None or not os.path.isfile(path):
        return path is not None and os.path.isdir(path)
    with open(path, "rb") as file:
        return file.read(len(SEGMENT)) == SEGMENT


def load_identities(path: str) -> List[Identity]:
    """Returns the keys in the file."""
    with open(path, "rb") as file:
        data = file.read(MAX_IDENTITY_FILE + 1)
    try:
        if len(data) > MAX_IDENTITY_FILE:
            raise ReaderError("too long for a file of keys")
        return read_identities(data, lambda: ask_passphrase(f"Passphrase of {path}: "))
    except ReaderError as error:
        raise ReaderError(f"{path}: {error}") from None


def load_shared_key(path: str) -> bytes:
    """Returns the key in the file: 32 bytes, or 64 hexadecimal digits."""
    with open(path, "rb") as file:
        data = file.read(MAX_IDENTITY_FILE)
    if len(data) == 32:
        return data
    text = data.strip()
    if re.fullmatch(rb"[0-9A-Fa-f]{64}", text) is None:
        raise ReaderError(f"{path}: neither 32 bytes nor 64 hexadecimal digits")
    return bytes.fromhex(text.decode())


def ask_passphrase(prompt: str) -> str:
    """Returns what the user types; never reads it from standard input."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(prompt)
        except (getpass.GetPassWarning, EOFError, UnicodeError):
            raise ReaderError("no passphrase could be read from the terminal") from None


def open_input(path: Optional[str]) -> BinaryIO:
    """Returns the file, or standard input if there is none."""
    if path is None or path == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return open(path, "rb")


def check_output(output: str, force: bool) -> None:
    """Raises an error if something stands there that must not be replaced."""
    if os.path.lexists(output) and not (force and os.path.isfile(output)):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), output)


def write_file(chunks: Iterable[bytes], output: str, force: bool) -> None:
    """Writes the plaintext to a file that only its owner can read: all of it, or nothing."""
    descriptor, temporary = tempfile.mkstemp(prefix=".reader-", dir=os.path.dirname(output) or ".")
    try:
        with open(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        publish(temporary, output, force)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def publish(temporary: str, output: str, force: bool) -> None:
    """Gives the file its name; without `force`, never in place of another file."""
    if force:
        os.replace(temporary, output)
        return
    try:
        os.link(temporary, output)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        check_output(output, force)
        os.rename(temporary, output)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
