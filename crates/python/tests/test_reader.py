"""Tests of the reader: the vectors, what Wattlock 0.1 wrote, and containers made by hand."""

import base64
import hashlib
import hmac
import importlib.util
import io
import itertools
import json
import shutil
import subprocess
import sys
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

READER = Path(__file__).resolve().parents[1] / "python" / "wattlock" / "reader.py"
VECTORS = Path(__file__).resolve().parents[3] / "vectors"
FROZEN = VECTORS / "frozen" / "0.1"
FROZEN_FOLDERS = VECTORS / "frozen" / "0.1-folders"

# Loaded by its path: it must not need the rest of the package.
spec = importlib.util.spec_from_file_location("wattlock_reader", READER)
reader = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = reader
spec.loader.exec_module(reader)


def has_post_quantum():
    try:
        from cryptography.hazmat.primitives import hpke
        from cryptography.hazmat.primitives.asymmetric import mlkem

        mlkem.MLKEM768PrivateKey.from_seed_bytes(bytes(64))
        return hasattr(hpke, "MLKEM768X25519PrivateKey")
    except (ImportError, AttributeError, UnsupportedAlgorithm):
        return False


# What the reader does not open, and why; it has to refuse it.
UNSUPPORTED_KEYS = {"plugin": "a plugin is a program, which the reader does not run"}
UNSUPPORTED_VECTORS = {}
if not has_post_quantum():
    UNSUPPORTED_VECTORS = {
        path.name: "this version of cryptography has no HPKE with ML-KEM-768"
        for path in (VECTORS / "age").iterdir()
        if "hybrid" in path.name
    }


# Vectors


def vectors(folder):
    paths = sorted((VECTORS / folder).iterdir())
    return [pytest.param(path, id=path.name) for path in paths if path.name != "README.md"]


def read_vector(path):
    head, body = path.read_bytes().split(b"\n\n", 1)
    fields = {"identity": [], "passphrase": [None]}
    for line in head.decode().splitlines():
        key, _, value = line.partition(": ")
        fields.setdefault(key, []).append(value)
    return fields, zlib.decompress(body) if "compressed" in fields else body


@pytest.mark.parametrize("path", [*vectors("wattlock-v1"), *vectors("age")])
def test_vector(path):
    fields, body = read_vector(path)
    identities, passphrase = fields["identity"], fields["passphrase"][-1]
    if path.name in UNSUPPORTED_VECTORS:
        with pytest.raises(reader.ReaderError):
            open_bytes(body, identities, passphrase)
        return
    if fields["expect"] == ["success"]:
        plaintext = open_bytes(body, identities, passphrase)
        assert [hashlib.sha256(plaintext).hexdigest()] == fields["payload"]
        return
    with pytest.raises(reader.ReaderError) as error:
        open_bytes(body, identities, passphrase)
    assert (error.type is reader.WrongKey) == (fields["expect"] == ["no match"])


def test_every_vector_is_there():
    assert len(vectors("wattlock-v1")) >= 35
    assert len(vectors("age")) >= 143
    assert len(segment_vectors()) >= 91


def open_bytes(body, identities, passphrase=None):
    return b"".join(reader.open_container(io.BytesIO(body), identities, passphrase))


# What Wattlock 0.1 wrote


def frozen():
    manifest = json.loads((FROZEN / "manifest.json").read_text())
    cases = []
    for name, entry in sorted(manifest["files"].items()):
        if entry["kind"] in ("wattlock", "age"):
            for key in entry["opens"]:
                cases.append(pytest.param(manifest, name, key, id=f"{name}-{key}"))
    return cases


@pytest.mark.parametrize(("manifest", "name", "key"), frozen())
def test_frozen(manifest, name, key):
    identities, passphrase = frozen_keys(manifest, key)
    if key in UNSUPPORTED_KEYS:
        with pytest.raises(reader.WrongKey, match="a plugin's key needs the program"):
            open_bytes((FROZEN / name).read_bytes(), identities)
        return
    with open(FROZEN / name, "rb") as file:
        container = reader.open_container(file, identities, passphrase)
        plaintext = b"".join(container)
    entry = manifest["files"][name]
    assert len(plaintext) == entry["plaintext"]["bytes"]
    assert hashlib.sha256(plaintext).hexdigest() == entry["plaintext"]["sha256"]
    assert sealed(container.metadata) == entry["sealed"]


def frozen_folders():
    manifest = json.loads((FROZEN_FOLDERS / "manifest.json").read_text())
    cases = []
    for entry in manifest["folders"]:
        for key in entry["opens"]:
            name = f"{entry['folder']}-{key}"
            cases.append(pytest.param(manifest, entry, key, id=name))
    return cases


@pytest.mark.parametrize(("manifest", "entry", "key"), frozen_folders())
def test_frozen_folder(manifest, entry, key):
    folder = FROZEN_FOLDERS / entry["folder"]
    shared_key, identities, passphrase = None, [], None
    if key.startswith("stream-"):
        shared_key = reader.load_shared_key(str(FROZEN_FOLDERS / "keys" / key))
    else:
        identities, passphrase = frozen_keys(manifest, key, FROZEN_FOLDERS)
    opened = reader.open_segments(folder, identities, shared_key, passphrase)
    if key in UNSUPPORTED_KEYS:
        with pytest.raises(reader.WrongKey, match="a plugin's key needs the program"):
            list(opened)
        return
    messages = []
    try:
        messages.extend(opened)
    except reader.Damaged:
        assert entry["exits"] == 3
    else:
        assert entry["exits"] != 3
    plaintext = b"".join(one.data for one in messages)
    assert len(plaintext) == entry["plaintext"]["bytes"]
    assert hashlib.sha256(plaintext).hexdigest() == entry["plaintext"]["sha256"]
    assert {one.tenant for one in messages} == {entry.get("tenant")}


def frozen_keys(manifest, key, folder=FROZEN):
    if key.startswith("passphrase"):
        return [], manifest["passphrase"]
    option, path = manifest["keys"][key]["open"]
    assert option == "-i"
    return reader.read_identities((folder / path).read_bytes(), ask_nobody), None


def sealed(metadata):
    """Returns metadata as the manifest has it."""
    if metadata is None or metadata == reader.Metadata():
        return None
    result = {"mode": f"{metadata.mode:04o}", "modified_unix_ns": metadata.mtime_ns}
    try:
        result["name"] = metadata.name.decode()
    except UnicodeDecodeError:
        result["name_hex"] = metadata.name.hex()
    return result


def ask_nobody():
    raise AssertionError("nobody should be asked")


# Containers made by hand

FILE_KEY = bytes(range(16))
DATA_KEY = bytes(range(32))
SECRET = bytes(range(100, 132))
IDENTITY = "AGE-SECRET-KEY-1V3JKVEMGD94XKMRDDEHHQUTJWD682ANH0PUH57MU04L8LQYPS2PSGQPNYW"


def container(plaintext=b"hello", **header):
    """Returns a container in wattlock v1 that IDENTITY opens."""
    chunks = [plaintext[i : i + 16384] for i in range(0, len(plaintext) + 1, 16384)]
    return container_header(**header) + b"".join(payload(chunks))


def container_header(metadata=bytes(64), stanzas=None, fields=None, extra=b""):
    if fields is None:
        fields = data_key_field() + metadata_field(metadata)
    text = b"wattlock/v1\n" + (x25519_stanza() if stanzas is None else stanzas) + fields + extra
    return finish(text, b"wattlock/v1 header")


def age_container(stanzas, plaintext=b"hello"):
    """Returns a container in age v1 with one chunk."""
    key = hkdf(FILE_KEY, bytes(16), b"payload")
    chunk = ChaCha20Poly1305(key).encrypt(bytes(11) + b"\1", plaintext, None)
    return finish(b"age-encryption.org/v1\n" + stanzas, b"header") + bytes(16) + chunk


def finish(text, label):
    text += b"---"
    mac = hmac.new(hkdf(FILE_KEY, b"", label), text, hashlib.sha256).digest()
    return text + b" " + base64_of(mac) + b"\n"


def entry(words, body):
    encoded = base64_of(body)
    lines = [encoded[i : i + 64] for i in range(0, len(encoded), 64)]
    if not lines or len(lines[-1]) == 64:
        lines.append(b"")
    return b"\n".join([words, *lines, b""])


def x25519_stanza(file_key=FILE_KEY, secret=SECRET):
    ephemeral = x25519.X25519PrivateKey.from_private_bytes(bytes(range(32)))
    share = ephemeral.public_key().public_bytes_raw()
    public = x25519.X25519PrivateKey.from_private_bytes(secret).public_key()
    info = b"age-encryption.org/v1/X25519"
    key = hkdf(ephemeral.exchange(public), share + public.public_bytes_raw(), info)
    body = ChaCha20Poly1305(key).encrypt(bytes(12), file_key, None)
    return entry(b"-> X25519 " + base64_of(share), body)


def scrypt_stanza(passphrase, work_factor=1):
    salt = b"age-encryption.org/v1/scrypt" + bytes(16)
    key = Scrypt(salt=salt, length=32, n=2**work_factor, r=8, p=1).derive(passphrase)
    body = ChaCha20Poly1305(key).encrypt(bytes(12), FILE_KEY, None)
    return entry(b"-> scrypt %s %d" % (base64_of(bytes(16)), work_factor), body)


def data_key_field(body=None):
    key = hkdf(FILE_KEY, bytes(16), b"wattlock/v1 data key")
    body = AESGCM(key).encrypt(bytes(12), DATA_KEY, None) if body is None else body
    return entry(b"=> data-key " + base64_of(bytes(16)), body)


def metadata_field(text, break_it=b""):
    key = expand(hashes.SHA512(), DATA_KEY, b"wattlock/v1 metadata\0" + bytes(16), 32)
    body = AESGCM(key).encrypt(bytes(12), text, None) + break_it
    return entry(b"=> metadata " + base64_of(bytes(16)), body)


def payload(chunks):
    """Yields the pieces of a payload."""
    label = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0"
    keys = expand(hashes.SHA512(), DATA_KEY, label + bytes(24) + b"wattlock/v1 payload", 76)
    yield bytes(24) + keys[44:]
    cipher = AESGCM(keys[:32])
    for number, chunk in enumerate(chunks):
        nonce = int.from_bytes(keys[32:44], "big") ^ number
        yield cipher.encrypt(nonce.to_bytes(12, "big"), chunk, None)


def base64_of(value):
    return base64.b64encode(value).rstrip(b"=")


def hkdf(secret, salt, info):
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def expand(hash_, key, info, length):
    return HKDFExpand(hash_, length, info).derive(key)


def metadata_entry(kind, value):
    return bytes([kind]) + len(value).to_bytes(2, "big") + value


def padded(text):
    return text + bytes(-len(text) % 64)


def armored(body):
    lines = base64.encodebytes(body).replace(b"\n", b"")
    lines = [lines[i : i + 64] for i in range(0, len(lines), 64)]
    begin, end = (b"-----%s AGE ENCRYPTED FILE-----" % word for word in (b"BEGIN", b"END"))
    return b"\n".join([begin, *lines, end, b""])


def test_metadata():
    time = (-5).to_bytes(8, "big", signed=True) + (7).to_bytes(4, "big")
    text = padded(
        metadata_entry(1, b"n\xff.txt")
        + metadata_entry(200, b"unknown") * 2
        + metadata_entry(2, b"\xff\xff\xff\xa0")
        + metadata_entry(3, time)
        + metadata_entry(4, b"")
    )
    opened = reader.open_container(io.BytesIO(container(metadata=text)), [IDENTITY])
    expected = reader.Metadata(b"n\xff.txt", 0o640, -5 * 10**9 + 7, True)
    assert opened.metadata == expected
    assert b"".join(opened) == b"hello"


def test_metadata_may_be_missing():
    body = container(fields=data_key_field())
    assert reader.open_container(io.BytesIO(body), [IDENTITY]).metadata is None


@pytest.mark.parametrize(
    "text",
    [
        bytes(63),
        bytes(63) + b"\1",
        padded(metadata_entry(1, b"")),
        padded(metadata_entry(1, b"a/b")),
        padded(metadata_entry(1, b"a\0b")),
        padded(metadata_entry(1, b".")),
        padded(metadata_entry(1, b"..")),
        padded(metadata_entry(1, b"n" * 256)),
        padded(metadata_entry(1, b"a") + metadata_entry(1, b"b")),
        padded(metadata_entry(2, b"\0\0\0")),
        padded(metadata_entry(3, bytes(11))),
        padded(metadata_entry(3, bytes(8) + (10**9).to_bytes(4, "big"))),
        padded(metadata_entry(4, b"x")),
        b"n" * 64,
        bytes([1, 0, 100]) + b"n" * 61,
        metadata_entry(200, b"x" * 59) + b"\1\0",
    ],
)
def test_malformed_metadata(text):
    assert_damaged(container(metadata=text))


@pytest.mark.parametrize(
    "body",
    [
        container(extra=entry(b"=> metadata " + base64_of(bytes(16)), b"")),
        container(extra=entry(b"=> new", b"") * 2),
        container(extra=x25519_stanza()),
        container(extra=b"=> new \n\n"),
        container(extra=b"=>new\n\n"),
        container(extra=b"other\n"),
        container(fields=b""),
        container(fields=metadata_field(bytes(64))),
        container(fields=data_key_field(bytes(48))),
        container(fields=data_key_field(bytes(47))),
        container(fields=data_key_field().replace(b"=> data-key ", b"=> data-key x ")),
        container(fields=data_key_field() + metadata_field(bytes(64), b"x")),
        container(stanzas=b""),
        container(stanzas=scrypt_stanza(b"p") + x25519_stanza()),
        container(stanzas=entry(b"-> X25519 AAAA", bytes(32)) + x25519_stanza()),
        container(stanzas=x25519_stanza().replace(b"\n", b"\r\n")),
        container() + b"x",
        container() + bytes(16),
        container_header(),
        container_header() + b"".join(payload([])),
        container_header() + b"".join(payload([bytes(16384)])),
        container_header() + b"".join(payload([bytes(16385)])),
        container_header() + b"".join(payload([b"short", b"last"])),
        age_container(x25519_stanza() + entry(b"=> new", b"")),
    ],
)
def test_damaged(body):
    assert_damaged(body)


def assert_damaged(body):
    with pytest.raises(reader.Damaged):
        open_bytes(body, [IDENTITY])


def test_unknown_fields_and_stanzas_are_passed_over():
    stanzas = entry(b"-> other ~ !", bytes(48)) + x25519_stanza()
    body = container(stanzas=stanzas, extra=entry(b"=> new 1 2", b"x"))
    assert open_bytes(body, [IDENTITY]) == b"hello"


def test_a_header_has_at_most_a_mebibyte():
    without = len(container_header())
    for size, is_allowed in ((1 << 20, True), ((1 << 20) + 1, False)):
        extra = field_of_size(size - without)
        body = container(extra=extra)
        if is_allowed:
            assert open_bytes(body, [IDENTITY]) == b"hello"
        else:
            assert_damaged(body)


def field_of_size(size):
    extra = entry(b"=> new", bytes(48 * (size // 65 - 10)))
    return extra.replace(b"new", b"new " + b"x" * (size - len(extra) - 1))


@pytest.mark.parametrize(
    "part", [b"-> x\n\n", b"=> x\n\n", b"x ", b"A" * 64 + b"\n", b"A\n", b"-> ", b"\n"]
)
def test_a_long_malformed_header_costs_little(part):
    body = b"wattlock/v1\n-> x " + part * (1_000_000 // len(part)) + b"\n--- x\n"
    start = time.perf_counter()
    assert_damaged(body)
    assert time.perf_counter() - start < 5


def test_a_header_has_at_most_1024_recipients():
    other = entry(b"-> other", b"")
    assert open_bytes(container(stanzas=x25519_stanza() + other * 1023), [IDENTITY]) == b"hello"
    with pytest.raises(reader.ReaderError, match="more than 1024 recipients"):
        open_bytes(container(stanzas=x25519_stanza() + other * 1024), [IDENTITY])


def test_armor_around_either_format():
    for body in (container(), age_container(x25519_stanza())):
        assert open_bytes(armored(body), [IDENTITY]) == b"hello"
        assert open_bytes(b" \n\n" + armored(body) + b"\n\t", [IDENTITY]) == b"hello"
    too_far = b"\n" * 1025 + armored(container())
    with pytest.raises(reader.NotAContainer):
        open_bytes(too_far, [IDENTITY])
    assert open_bytes(armored(container()) + b"\n" * 100_000, [IDENTITY]) == b"hello"
    assert_damaged(armored(container()) + b"\n" * 100_000 + b"x")


def test_every_flipped_and_missing_byte_of_a_container_is_noticed():
    body = container(metadata=padded(metadata_entry(1, b"name")))
    for position in range(len(body)):
        with pytest.raises(reader.ReaderError):
            open_bytes(flip(body, position), [IDENTITY])
        with pytest.raises(reader.ReaderError):
            open_bytes(body[:position], [IDENTITY])


def flip(text, position):
    return text[:position] + bytes([text[position] ^ 1]) + text[position + 1 :]


def test_a_file_may_give_few_bytes_at_a_time():
    for body in (container(b"x" * 1000), armored(container(b"x" * 1000))):
        pieces = Pieces(body[i : i + 1] for i in range(len(body)))
        assert b"".join(reader.open_container(pieces, [IDENTITY])) == b"x" * 1000


class Pieces:
    """A file that gives these pieces."""

    def __init__(self, pieces):
        self.pieces = iter(pieces)

    def read(self, _):
        return next(self.pieces, b"")


def test_memory_is_constant_and_chunks_come_as_they_are_read():
    chunks = 2000
    pieces = payload([bytes(16384)] * chunks + [b"end"])
    file = Pieces(itertools.chain([container_header()], pieces))
    tracemalloc.start()
    length = sum(len(chunk) for chunk in reader.open_container(file, [IDENTITY]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert length == chunks * 16384 + 3
    assert peak < 4 << 20


def test_chunks_before_a_damaged_one_are_given():
    first = bytes(16384)
    body = container(first + b"second")
    opened = reader.open_container(io.BytesIO(flip(body, len(body) - 1)), [IDENTITY])
    assert next(opened) == first
    with pytest.raises(reader.Damaged):
        next(opened)


# Keys


def test_work_factor_has_a_limit():
    body = container(stanzas=scrypt_stanza(b"p", 3))
    assert open_bytes(body, [], "p") == b"hello"
    with pytest.raises(reader.ReaderError, match="work factor is above 2"):
        reader.open_container(io.BytesIO(body), [], "p", max_work_factor=2)
    huge = container(stanzas=scrypt_stanza(b"p").replace(b" 1\n", b" 63\n"))
    with pytest.raises(reader.ReaderError, match="work factor is above 40"):
        reader.open_container(io.BytesIO(huge), [], "p", max_work_factor=99)


def test_the_key_that_fits_is_found_among_others():
    stanzas = x25519_stanza(bytes(16), bytes(32)) + x25519_stanza()
    other = reader.X25519Identity(bytes([7] * 32))
    assert open_bytes(container(stanzas=stanzas), [other, IDENTITY], "p") == b"hello"
    with pytest.raises(reader.WrongKey):
        open_bytes(container(stanzas=stanzas), [other], "p")
    with pytest.raises(reader.WrongKey):
        open_bytes(container(), [])


def test_identity_files():
    text = f"# comment\r\n\n{IDENTITY}\n  AGE-PLUGIN-WATTLOCKTEST-1D9JX2MN5D968JHWSMQ3\n"
    keys = reader.read_identities(text.encode(), ask_nobody)
    assert open_bytes(container(), keys) == b"hello"


@pytest.mark.parametrize("wrap", [lambda body: body, armored])
def test_encrypted_identity_files(wrap):
    text = f"{IDENTITY}\n".encode()
    for body in (
        container(text, stanzas=scrypt_stanza(b"secret")),
        age_container(scrypt_stanza(b"secret"), text),
    ):
        keys = reader.read_identities(wrap(body), lambda: "secret")
        assert open_bytes(container(), keys) == b"hello"
        with pytest.raises(reader.WrongKey):
            reader.read_identities(wrap(body), lambda: "wrong")


@pytest.mark.parametrize(
    "text",
    [
        IDENTITY.lower(),
        IDENTITY[:-1] + "Q",
        IDENTITY[:-1],
        IDENTITY[0].lower() + IDENTITY[1:],
        "AGE-SECRET-KEY-1" + "Ä" * 58,
        "secret words",
        "age149s7z0ccqr035fgzf8ps0rqltdls854dmfllggq0tv9a4e737erq90e6wl",
    ],
)
def test_a_wrong_identity_is_refused_without_its_text(text):
    with pytest.raises(reader.ReaderError) as error:
        reader.read_identities(f"# comment\n{text}\n".encode(), ask_nobody)
    assert str(error.value) == "line 2 is not a secret key that this reader knows"


@pytest.mark.parametrize("text", [b"", b"# nothing\n", b"\n"])
def test_a_file_without_keys(text):
    with pytest.raises(reader.ReaderError, match="there is no key in it"):
        reader.read_identities(text, ask_nobody)


def test_ssh_keys_that_are_not_supported():
    ecdsa = ssh_file(ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(reader.ReaderError, match="another type"):
        reader.read_identities(ecdsa, ask_nobody)
    with pytest.raises(reader.ReaderError, match="malformed"):
        reader.read_identities(ssh_file(ed25519.Ed25519PrivateKey.generate())[:100], ask_nobody)


def ssh_file(key):
    form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
    return key.private_bytes(*form, serialization.NoEncryption())


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_an_ssh_key_with_a_passphrase_says_what_to_do(tmp_path):
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", "key"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(reader.ReaderError, match="ssh-keygen -p"):
        reader.read_identities((tmp_path / "key").read_bytes(), ask_nobody)


# Records

SESSION_KEY = bytes(range(50, 82))


def seal_record(message, epoch=7, counter=3, additional_data=b"", version=1):
    writer = bytes(range(16))
    head = bytes([version]) + epoch.to_bytes(4, "big") + writer + counter.to_bytes(8, "big")
    info = b"wattlock/v1 record" + epoch.to_bytes(4, "big") + writer
    key = expand(hashes.SHA256(), SESSION_KEY, info, 32)
    nonce = bytes(4) + counter.to_bytes(8, "big")
    return head + AESGCM(key).encrypt(nonce, message, head + additional_data)


@pytest.mark.parametrize("message", [b"", b"m", b"message" * 1000])
def test_record(message):
    keys = {6: bytes(32), 7: SESSION_KEY}
    assert reader.open_record(seal_record(message), keys) == message
    record = seal_record(message, additional_data=b"topic", counter=2**64 - 1)
    assert reader.open_record(record, keys, b"topic") == message
    with pytest.raises(reader.Damaged):
        reader.open_record(record, keys, b"topix")


def test_every_flipped_and_missing_byte_of_a_record_is_noticed():
    record = seal_record(b"message")
    for position in range(len(record)):
        for changed in (flip(record, position), record[:position]):
            with pytest.raises(reader.ReaderError):
                reader.open_record(changed, {7: SESSION_KEY, 6: SESSION_KEY})
    with pytest.raises(reader.Damaged):
        reader.open_record(record + b"x", {7: SESSION_KEY})


def test_records_that_are_refused():
    with pytest.raises(reader.NotAContainer):
        reader.open_record(seal_record(b"", version=2), {7: SESSION_KEY})
    with pytest.raises(reader.WrongKey):
        reader.open_record(seal_record(b""), {8: SESSION_KEY})
    with pytest.raises(reader.ReaderError, match="32 bytes"):
        reader.open_record(seal_record(b""), {7: SESSION_KEY[:31]})
    with pytest.raises(reader.Damaged, match="wrong length"):
        reader.open_record(seal_record(b"")[:44], {7: SESSION_KEY})
    with pytest.raises(reader.Damaged, match="wrong length"):
        reader.open_record(b"\1" + bytes(44 + (64 << 20) + 1), {0: SESSION_KEY})


def record_vectors():
    paths = sorted((VECTORS / "record").glob("*.json"))
    cases = [case for path in paths for case in json.loads(path.read_text())["cases"]]
    return [pytest.param(case, id=case["name"]) for case in cases]


@pytest.mark.parametrize("case", record_vectors())
def test_record_vector(case):
    fields = ("record", "session_key", "additional_data")
    record, key, additional_data = (bytes.fromhex(case[field]) for field in fields)
    keys = {case["epoch"]: key}
    if case["message"] is not None:
        message = bytes.fromhex(case["message"])
        assert reader.open_record(record, keys, additional_data) == message
        return
    with pytest.raises(reader.ReaderError):
        reader.open_record(record, keys, additional_data)


# Segments

STREAM_V2 = VECTORS / "stream-v2"
SHARED_KEY = bytes(range(32))


def segment_vectors():
    paths = sorted(STREAM_V2.glob("*/case.json"))
    return [pytest.param(path.parent, id=path.parent.name) for path in paths]


@pytest.mark.parametrize("path", segment_vectors())
def test_segments_vector(path):
    case = json.loads((path / "case.json").read_text())
    messages, error = open_all(path, shared_key=SHARED_KEY)
    chosen = [one.data for one in messages if is_selected(one, **case.get("selection", {}))]
    assert b"".join(chosen).hex() == case["messages"]
    if case["expect"] == "success":
        assert error is None
        return
    expected = reader.WrongKey if path.name == "salt_missing" else reader.Damaged
    assert type(error) is expected


def is_selected(messages, source=None, from_us=0, until_us=2**64):
    is_from = source in (None, messages.source) or messages.source.startswith(source + ":")
    return is_from and from_us <= messages.time_us < until_us


def open_all(paths, *keys, **named_keys):
    """Returns what was opened, and what was raised behind it."""
    messages = []
    try:
        for one in reader.open_segments(paths, *keys, **named_keys):
            messages.append(one)
    except reader.ReaderError as error:
        return messages, error
    return messages, None


def text_of(messages):
    return b"".join(one.data for one in messages)


def test_messages_say_whence_and_when_they_came():
    (first, *_), _ = open_all(STREAM_V2 / "success_tenant", shared_key=SHARED_KEY)
    expected = (b"first\n", "10.0.0.7:5000", 1_790_000_000 * 10**6, 1, "acme")
    assert first == reader.Messages(*expected)


def test_segments_that_are_named():
    segments = [STREAM_V2 / "success_three_segments" / f"{n:06}.wls" for n in (1, 2, 3)]
    assert text_of(reader.open_segments(str(segments[1]), shared_key=SHARED_KEY)) == b"two\n"
    messages, error = open_all(segments[:2], shared_key=SHARED_KEY)
    assert (text_of(messages), error) == (b"one\nrawtwo\n", None)
    messages, error = open_all(segments[::2], shared_key=SHARED_KEY)
    assert text_of(messages) == b"one\nrawnew\nthree\n" and "missing" in str(error)


def session_key(salt):
    return expand(hashes.SHA256(), SHARED_KEY, b"wattlock-stream/v2 session" + salt, 32)


@pytest.fixture
def folder_of_containers(tmp_path):
    """Two runs whose keys are in containers."""
    folder = tmp_path / "logs"
    shutil.copytree(STREAM_V2 / "success_two_runs", folder)
    for salt in folder.glob("keys/*.salt"):
        salt.with_suffix(".key").write_bytes(container(session_key(salt.read_bytes())))
        salt.unlink()
    return folder


TEXT = b"first\nsecond\nthird\nfourth\n"
TWO_RUNS = TEXT + b"after\n"


def test_segments_whose_keys_are_in_containers(folder_of_containers):
    assert text_of(reader.open_segments(folder_of_containers, [IDENTITY])) == TWO_RUNS
    other = reader.X25519Identity(bytes([7] * 32))
    for keys in ({"identities": [other]}, {"shared_key": SHARED_KEY}, {"passphrase": "p"}, {}):
        messages, error = open_all(folder_of_containers, **keys)
        assert messages == [] and type(error) is reader.WrongKey


def test_a_removed_key_ends_its_epoch_alone(folder_of_containers):
    (folder_of_containers / "keys" / "000001.key").unlink()
    messages, error = open_all(folder_of_containers, [IDENTITY])
    assert text_of(messages) == b"after\n"
    assert type(error) is reader.WrongKey and "000001" in str(error)


def test_a_container_of_another_length_is_no_session_key(folder_of_containers):
    (folder_of_containers / "keys" / "000001.key").write_bytes(container(bytes(31)))
    messages, error = open_all(folder_of_containers, [IDENTITY])
    assert text_of(messages) == b"after\n" and type(error) is reader.Damaged


HEADER = 19 + 4 + 16 + 2 + 32 + 4
"""The length of a header without additional data."""


@pytest.mark.parametrize("name", ["success_one_source", "success_recovered"])
def test_every_flipped_and_missing_byte_of_a_segment_is_noticed(name, tmp_path):
    folder = tmp_path / "logs"
    shutil.copytree(STREAM_V2 / name, folder)
    path = folder / "000001.wls"
    body = path.read_bytes()
    # What a killed writer did not write whole is nobody's, and a tail may be missing or say
    # anything of where the index is.
    valid, free = len(body) - 16, range(len(body) - 16, len(body))
    if name == "success_recovered":
        valid = int.from_bytes(body[-16:-8], "big")
        free = [*range(valid, len(body) - 16), *range(len(body) - 8, len(body))]
    whole = text_of(open_all(folder, shared_key=SHARED_KEY)[0])
    own, after = whole[: len(TEXT)], whole[len(TEXT) :]
    for position in range(len(body)):
        path.write_bytes(flip(body, position))
        text, error = open_text(folder)
        assert text.endswith(after) and own.startswith(text[: len(text) - len(after)])
        assert (error is None) == (position in free)
        path.write_bytes(body[:position])
        text, error = open_text(folder)
        assert text.endswith(after) and own.startswith(text[: len(text) - len(after)])
        assert (error is None) == (position < HEADER or position >= valid)
        assert error is not None or text == (after if position < HEADER else whole)


def open_text(folder):
    messages, error = open_all(folder, shared_key=SHARED_KEY)
    return text_of(messages), error


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_a_segment_that_is_written_has_no_end_yet():
    import fcntl

    path = STREAM_V2 / "cut" / "000001.wls"
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert text_of(reader.open_segments(path, shared_key=SHARED_KEY)) == TEXT
    assert type(open_all(path, shared_key=SHARED_KEY)[1]) is reader.Damaged


def test_many_faults_are_not_all_named(tmp_path):
    for number in range(1, 21):
        (tmp_path / f"{number:06}.wls").write_bytes(b"no segment" * 8)
    _, error = open_all(tmp_path, shared_key=SHARED_KEY)
    assert str(error).count("not a segment") == 10 and str(error).endswith("; and 10 more")


def test_folders_and_keys_that_are_none(tmp_path):
    with pytest.raises(reader.NotAContainer, match="no segment"):
        reader.open_segments(tmp_path, shared_key=SHARED_KEY)
    with pytest.raises(reader.ReaderError, match="32 bytes"):
        reader.open_segments(tmp_path, shared_key=SHARED_KEY[:31])
    with pytest.raises(FileNotFoundError):
        list(reader.open_segments(tmp_path / "000001.wls", shared_key=SHARED_KEY))


# The program


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "keys.txt").write_text(f"# mine\n{IDENTITY}\n")
    (tmp_path / "wrong.txt").write_text(IDENTITY_OF_X25519_A)
    (tmp_path / "file.wlk").write_bytes(container(b"x" * 20000))
    (tmp_path / "passphrase.wlk").write_bytes(container(stanzas=scrypt_stanza(b"p")))
    return tmp_path


IDENTITY_OF_X25519_A = (FROZEN / "keys/x25519-a.txt").read_text()


def run(folder, *arguments, stdin=b"", program=(str(READER),)):
    """Runs the program without a terminal, and compares what is in the folder."""
    before = sorted(path.name for path in folder.iterdir())
    command = [sys.executable, *program, *arguments]
    done = subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, start_new_session=True
    )
    if done.returncode != 0:
        assert sorted(path.name for path in folder.iterdir()) == before
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr.decode().strip()


PLAINTEXT = b"x" * 20000


def test_program_opens_to_standard_output(folder):
    assert run(folder, "-i", "keys.txt", "file.wlk") == (0, PLAINTEXT, "")
    body = (folder / "file.wlk").read_bytes()
    assert run(folder, "-i", "keys.txt", stdin=body) == (0, PLAINTEXT, "")
    assert run(folder, "-i", "wrong.txt", "-i", "keys.txt", "-", stdin=body) == (0, PLAINTEXT, "")
    assert run(folder, "-i", "keys.txt", "-o", "-", stdin=body) == (0, PLAINTEXT, "")


def test_program_is_a_module_too(folder):
    package = folder / "wattlock"
    package.mkdir()
    shutil.copy(READER, package)
    program = ("-m", "wattlock.reader")
    assert run(folder, "-i", "keys.txt", "file.wlk", program=program) == (0, PLAINTEXT, "")


def test_program_writes_a_file_that_only_its_owner_can_read(folder):
    assert run(folder, "-i", "keys.txt", "-o", "out", "file.wlk") == (0, b"", "")
    assert (folder / "out").read_bytes() == PLAINTEXT
    assert sorted(folder.glob(".*")) == []
    if sys.platform != "win32":
        assert (folder / "out").stat().st_mode & 0o777 == 0o600


def test_program_replaces_a_file_only_with_f(folder):
    (folder / "out").write_bytes(b"old")
    status, stdout, stderr = run(folder, "-i", "keys.txt", "-o", "out", "file.wlk")
    assert (status, stdout) == (1, b"") and stderr.startswith("reader: out: ")
    assert (folder / "out").read_bytes() == b"old"
    assert run(folder, "-f", "-i", "wrong.txt", "-o", "out", "file.wlk")[0] == 1
    assert (folder / "out").read_bytes() == b"old"
    assert run(folder, "-f", "-i", "keys.txt", "-o", "out", "file.wlk") == (0, b"", "")
    assert (folder / "out").read_bytes() == PLAINTEXT
    assert run(folder, "-f", "-i", "keys.txt", "-o", ".", "file.wlk")[0] == 1


def test_program_never_replaces_a_file_that_came_meanwhile(folder):
    (folder / "out").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        reader.write_file(iter([b"new"]), str(folder / "out"), False)
    assert (folder / "out").read_bytes() == b"old"
    assert sorted(folder.glob(".*")) == []


def test_program_with_a_wrong_key(folder):
    expected = (1, b"", "reader: none of the keys opens it")
    assert run(folder, "-i", "wrong.txt", "file.wlk") == expected
    assert run(folder, "-i", "wrong.txt", "-o", "out", "file.wlk") == expected


def test_program_with_a_cut_file(folder):
    cut = (folder / "file.wlk").read_bytes()[:-1]
    expected = "reader: chunk 1 was changed or cut off"
    assert run(folder, "-i", "keys.txt", "-o", "out", stdin=cut) == (1, b"", expected)
    assert run(folder, "-i", "keys.txt", stdin=cut) == (1, PLAINTEXT[:16384], expected)


def test_program_with_files_that_are_not_there(folder):
    assert run(folder, "-i", "no", "file.wlk")[2] == "reader: no: No such file or directory"
    assert run(folder, "-i", "keys.txt", "no")[2] == "reader: no: No such file or directory"
    assert run(folder, "-i", "keys.txt", "-o", "no/out", "file.wlk")[0] == 1
    assert run(folder, "-i", "file.wlk", "-i", "keys.txt", "file.wlk")[0] == 1


def test_program_names_the_file_of_keys_that_is_wrong(folder):
    (folder / "bad.txt").write_text("secret")
    expected = "reader: bad.txt: line 1 is not a secret key that this reader knows"
    assert run(folder, "-i", "bad.txt", "file.wlk") == (1, b"", expected)


@pytest.fixture
def logs(folder):
    """Folders of segments: `logs` is whole, `damaged` is not."""
    shutil.copytree(STREAM_V2 / "success_two_runs", folder / "logs")
    shutil.copytree(STREAM_V2 / "batch_checksum", folder / "damaged")
    (folder / "key").write_bytes(SHARED_KEY)
    (folder / "key.hex").write_text(SHARED_KEY.hex().upper() + "\n")
    return folder


def test_program_opens_segments(logs):
    for key in ("key", "key.hex"):
        assert run(logs, "--key-file", key, "logs") == (0, TWO_RUNS, "")
    assert run(logs, "--key-file", "key", "logs/000002.wls") == (0, b"after\n", "")
    assert run(logs, "--key-file", "key", "-o", "out", "logs") == (0, b"", "")
    assert (logs / "out").read_bytes() == TWO_RUNS


def test_program_opens_segments_with_identities(folder, folder_of_containers):
    assert run(folder, "-i", "keys.txt", str(folder_of_containers)) == (0, TWO_RUNS, "")
    status, stdout, stderr = run(folder, "-i", "wrong.txt", str(folder_of_containers))
    assert (status, stdout) == (1, b"") and "none of the keys opens it" in stderr


def test_program_opens_what_is_right_and_reports_the_rest(logs):
    path = Path("damaged", "000001.wls")
    expected = f"reader: {path}: bytes before its end are no batch, or behind its index"
    assert run(logs, "--key-file", "key", "damaged") == (1, b"first\nafter\n", expected)
    assert run(logs, "--key-file", "key", "-o", "out", "damaged") == (1, b"", expected)


def test_program_with_a_shared_key_that_is_none(logs):
    expected = "reader: keys.txt: neither 32 bytes nor 64 hexadecimal digits"
    assert run(logs, "--key-file", "keys.txt", "logs") == (1, b"", expected)
    expected = "reader: the shared key is for segments: name one, or their folder"
    assert run(logs, "--key-file", "key", "file.wlk") == (1, b"", expected)
    segment = (logs / "logs" / "000001.wls").read_bytes()
    assert run(logs, "--key-file", "key", stdin=segment) == (1, b"", expected)
    assert run(logs, "--key-file", "no", "logs")[2] == "reader: no: No such file or directory"
    assert run(logs, "--key-file", "key", ".")[2] == "reader: .: there is no segment in it"


def test_usage(folder):
    assert run(folder)[0] == 2
    assert run(folder, "--unknown")[0] == 2
    for arguments in (["-i", IDENTITY], ["-x", IDENTITY], [IDENTITY.lower()]):
        status, _, stderr = run(folder, *arguments)
        assert status == 2 and IDENTITY[20:40] not in stderr.upper()
    status, stdout, _ = run(folder, "--help")
    assert status == 0
    assert max(len(line) for line in stdout.decode().splitlines()) <= 80


def test_program_asks_for_a_passphrase(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(reader.getpass, "getpass", lambda prompt: "p")
    assert reader.main(["-p", "-o", "out", "passphrase.wlk"]) == 0
    assert (folder / "out").read_bytes() == b"hello"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no session without a console")
def test_program_reads_no_passphrase_from_standard_input(folder):
    expected = "reader: no passphrase could be read from the terminal"
    assert run(folder, "-p", "passphrase.wlk", stdin=b"p\n") == (1, b"", expected)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends programs at once")
def test_an_ended_program_leaves_nothing(folder):
    command = [sys.executable, str(READER), "-i", "keys.txt", "-o", "out"]
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(container(bytes(200_000))[:100_000])
    process.stdin.flush()
    for _ in range(1000):
        if list(folder.glob(".reader-*")):
            break
        time.sleep(0.01)
    process.terminate()
    assert process.communicate()[1] == b"reader: interrupted\n"
    assert process.returncode == 1
    assert not list(folder.glob(".reader-*")) and not (folder / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_a_closed_pipe_is_an_error_without_a_traceback(folder):
    (folder / "file.wlk").write_bytes(container(bytes(1_000_000)))
    command = f"'{sys.executable}' '{READER}' -i keys.txt file.wlk | head -c 1 >out"
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True)
    assert (folder / "out").read_bytes() == b"\0"
    assert done.stderr.decode() == "reader: [Errno 32] Broken pipe\n"
