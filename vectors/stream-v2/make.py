#!/usr/bin/env python3
"""Makes the vectors in this folder from the text of docs/spec/stream-v2.md and docs/spec/record.md,
with zlib's CRC-32 and the package `cryptography`, and with none of Wattlock's code."""

import hashlib
import json
import shutil
import struct
import zlib
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

HERE = Path(__file__).parent
MAGIC = b"wattlock-stream/v2\n"
KEY = bytes(range(32))
TENANT = b"\1\1\0\4acme"
RAW, LINES, LENGTH = 0, 1, 2
COMPLETE, VANISHED, STOPPED = 0, 1, 2
SECOND = 10**6
TIME = 1_790_000_000 * SECOND


# What the specification says


def expand(prk, info):
    """HKDF-Expand-SHA-256 to 32 bytes."""
    return HKDFExpand(SHA256(), 32, info).derive(prk)


def digest(name, length):
    """Nothing is random here, so that the vectors can be made again."""
    return hashlib.sha256(name.encode()).digest()[:length]


def salt(epoch):
    """The salt of an epoch."""
    return digest(f"salt {epoch}", 32)


def session_key(epoch):
    """The session key of an epoch."""
    return expand(KEY, b"wattlock-stream/v2 session" + salt(epoch))


def varint(number):
    """Unsigned LEB128 in its shortest form."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def record(epoch, writer, counter, payload, additional):
    """A record, version 1."""
    key = expand(session_key(epoch), b"wattlock/v1 record" + struct.pack(">I", epoch) + writer)
    head = struct.pack(">BI16sQ", 1, epoch, writer, counter)
    return head + AESGCM(key).encrypt(struct.pack(">IQ", 0, counter), payload, head + additional)


def header(epoch, writer, additional, commitment=None, magic=MAGIC):
    """The header of a segment, with a commitment that fits unless another is given."""
    bound = struct.pack(">I", epoch) + writer
    if commitment is None:
        info = b"wattlock-stream/v2 commitment" + bound + additional
        commitment = expand(session_key(epoch), info)
    text = magic + bound + struct.pack(">H", len(additional)) + additional + commitment
    return text + struct.pack(">I", zlib.crc32(text))


def batch(writer, body):
    """A batch of records, each after its length."""
    length = struct.pack(">I", len(body))
    return length + struct.pack(">I", zlib.crc32(writer + length + body)) + body


def start(run, number=0, recovered=()):
    """The payload of a start; `recovered` has pairs of writer ID and valid length."""
    names = b"".join(writer + struct.pack(">Q", length) for writer, length in recovered)
    return b"\0" + digest(f"run {run}", 16) + varint(number) + varint(len(recovered)) + names


def end(source, reason=COMPLETE):
    """The payload of a source's end."""
    return b"\3" + varint(source) + bytes([reason])


def close(is_last=True):
    """The payload of a close."""
    return b"\4" + bytes([is_last])


class Segment:
    """A segment as it is written, batch by batch. Its records can be changed until `file`."""

    def __init__(self, run, number=0, epoch=1, recovered=(), additional=b"", first=None):
        self.name = f"{run} {number}"
        self.writer = digest(f"writer {self.name}", 16)
        self.epoch, self.additional = epoch, additional
        self.header = header(epoch, self.writer, additional)
        self.batches, self.sources, self.seen, self.blocks, self.tail = [], {}, [], [0], b""
        self.add(start(run, number, recovered) if first is None else first)

    def seal(self, payload, counter):
        """The record of a payload."""
        return record(self.epoch, self.writer, counter, payload, self.additional)

    def count(self, batches=None):
        """How many records there are, or are in the first so many batches."""
        return sum(len(records) for records in self.batches[:batches])

    def add(self, *payloads):
        """Writes one batch."""
        first = self.count()
        self.batches.append([self.seal(payload, first + i) for i, payload in enumerate(payloads)])

    def begin(self, source, framing, name, is_continued=False):
        """The payload of a source's beginning."""
        self.sources[source] = (framing, name.encode())
        return b"\1" + varint(source) + bytes([framing, is_continued]) + name.encode()

    def messages(self, source, data, time=TIME):
        """The payload of messages that are to be in the next batch."""
        self.seen.append((len(self.batches), time, source))
        return b"\2" + varint(source) + struct.pack(">Q", time) + data

    def block(self):
        """Begins a block with the next batch."""
        self.blocks.append(len(self.batches))

    def length(self, batches=None):
        """Bytes of the header and all batches, or the first so many."""
        return len(self.header) + len(self.body(batches))

    def body(self, batches=None):
        """The batches, or the first so many."""
        lists = self.batches[:batches]
        return b"".join(batch(self.writer, b"".join(map(framed, records))) for records in lists)

    def index(self):
        """The payload of the index of all batches up to here."""
        out = [b"\5", varint(len(self.sources))]
        for source, (framing, name) in sorted(self.sources.items()):
            out += [varint(source), bytes([framing]), varint(len(name)), name]
        out.append(varint(len(self.blocks)))
        for first, after in zip(self.blocks, self.blocks[1:] + [len(self.batches)]):
            seen = [(time, source) for at, time, source in self.seen if first <= at < after]
            times = [time for time, _ in seen] or [2**64 - 1, 0]
            earliest, latest = (min(times), max(times)) if seen else times
            sources = sorted({source for _, source in seen})
            out += [varint(self.length(first)), varint(self.count(first))]
            out.append(struct.pack(">QQ", earliest, latest))
            out += [varint(len(sources)), *map(varint, sources)]
        return b"".join(out)

    def finish(self, is_last=True):
        """Closes the segment, and returns it."""
        self.add(close(is_last))
        self.tail = struct.pack(">Q", self.length()) + b"wls2end\n"
        self.add(self.index())
        return self

    def file(self):
        """The segment's bytes."""
        return self.header + self.body() + self.tail

    def cut(self, torn=b""):
        """The bytes that a killed writer and the run which recovered it leave."""
        tail = struct.pack(">Q", self.length()) + b"wls2cut\n"
        return self.header + self.body() + torn + tail


def framed(sealed):
    """A record after its length."""
    return varint(len(sealed)) + sealed


def flip(data, at, mask=1):
    """The bytes with one of them changed."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


# Segments that many cases have


NAME = "10.0.0.7:5000"
TEXT = b"first\nsecond\nthird\nfourth\n"
AFTER = b"after\n"


def unfinished(run="example", **how):
    """A segment with four records of messages in three batches after that of the start."""
    segment = Segment(run, **how)
    segment.add(segment.begin(1, LINES, NAME), segment.messages(1, b"first\n"))
    segment.add(segment.messages(1, b"second\n"), segment.messages(1, b"third\n"))
    segment.add(segment.messages(1, b"fourth\n"))
    return segment


def example(**how):
    """The same with an end."""
    segment = unfinished(**how)
    segment.add(end(1))
    return segment.finish()


def after(**how):
    """A segment of another run, which opens whatever is wrong with the one before."""
    segment = Segment("after", **how)
    segment.add(segment.begin(1, LINES, "10.0.0.8:6000"), segment.messages(1, AFTER), end(1))
    return segment.finish()


def rotated():
    """Three segments of one run, with a source that goes on, one that ends and one that comes."""
    first, second, third = (Segment("rotated", number) for number in range(3))
    first.add(first.begin(1, LINES, NAME), first.begin(2, RAW, "10.0.0.7:5001"))
    first.add(first.messages(1, b"one\n"), first.messages(2, b"raw"), end(2))
    second.add(second.begin(1, LINES, NAME, True), second.messages(1, b"two\n"))
    third.add(third.begin(1, LINES, NAME, True), third.begin(3, LINES, "10.0.0.9:1"))
    third.add(third.messages(3, b"new\n"), third.messages(1, b"three\n"))
    third.add(end(3), end(1))
    return [first.finish(False), second.finish(False), third.finish()]


def blocks():
    """A segment of four blocks, of which one has no messages, and three sources."""
    segment = Segment("blocks")
    segment.add(segment.begin(1, LINES, "10.0.0.7:5000"), segment.begin(2, LINES, "10.0.0.70:5000"))
    segment.add(segment.messages(1, b"a0\n", TIME), segment.messages(2, b"b0\n", TIME))
    segment.block()
    segment.add(segment.messages(2, b"b1\n", TIME + SECOND))
    segment.add(segment.messages(2, b"b2\n", TIME + 2 * SECOND))
    segment.block()
    segment.add(end(2), segment.begin(3, LINES, "10.0.0.7"))
    segment.block()
    segment.add(segment.messages(3, b"c3\n", TIME + 3 * SECOND))
    segment.add(segment.messages(1, b"a4\n", TIME + 4 * SECOND), end(3), end(1))
    return segment.finish()


# Cases


def write(name, expect, messages, why, files, epochs=(1,), salts=None, selection=None):
    """Writes a case. `files` are those of segments, from 1, or by their names."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "keys").mkdir(parents=True)
    if not isinstance(files, dict):
        files = {f"{number:06}.wls": data for number, data in enumerate(files, 1)}
    salts = {epoch: salt(epoch) for epoch in epochs} if salts is None else salts
    for file_name, data in files.items():
        (folder / file_name).write_bytes(data)
    for epoch, value in salts.items():
        # An epoch, or the name of a file that is kept beside another.
        name = f"{epoch:06}.salt" if isinstance(epoch, int) else epoch
        (folder / "keys" / name).write_bytes(value)
    case = {"expect": expect, "messages": messages.hex(), "why": why}
    if selection is not None:
        case["selection"] = selection
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def success(name, messages, why, *segments, **more):
    """Writes a case with which nothing is wrong."""
    files = [segment.file() for segment in segments]
    write(f"success_{name}", "success", messages, why, **{"files": files, **more})


def damaged(name, messages, why, file, **more):
    """Writes a case of one file with a fault, and a segment of another run behind it."""
    files = [file, after().file()]
    write(name, "damaged", messages + AFTER, why, **{"files": files, **more})


def successes():
    """Cases with which nothing is wrong."""
    success("one_source", TEXT, "A source sends four lines.", example())

    two = Segment("two")
    two.add(two.begin(1, LINES, NAME), two.begin(2, LINES, "10.0.0.8:6000"))
    two.add(two.messages(1, b"1a\n"), two.messages(2, b"2a\n2b\n"), two.messages(1, b"1b\n"))
    two.add(end(1), two.messages(2, b"2c\n"), end(2))
    success("two_sources", b"1a\n2a\n2b\n1b\n2c\n", "Two sources take turns.", two.finish())

    three = Segment("three")
    three.add(three.begin(1, RAW, "standard input"), three.messages(1, bytes(range(256))))
    three.add(three.begin(2, LINES, "lines"), three.messages(2, b"line\n\nlast\n"))
    three.add(three.begin(3, LENGTH, ""), three.messages(3, b"\0\0\0\5hello\0\0\0\0"))
    three.add(end(1), end(2), end(3))
    text = bytes(range(256)) + b"line\n\nlast\n\0\0\0\5hello\0\0\0\0"
    success("framings", text, "Each framing occurs, and a source without a name.", three.finish())

    reasons = Segment("reasons")
    for source, reason in enumerate([COMPLETE, VANISHED, STOPPED]):
        name = f"reason {reason}"
        reasons.add(reasons.begin(source, LINES, name), reasons.messages(source, b"line\n"))
        reasons.add(end(source, reason))
    why = "Sources end for each reason: they had sent all, vanished, or were stopped."
    success("reasons", b"line\n" * 3, why, reasons.finish())

    success("no_messages", b"", "Nobody sent anything.", Segment("nothing").finish())

    empty = Segment("empty")
    empty.add(empty.begin(1, RAW, NAME), empty.messages(1, b""), empty.messages(1, b"x"), end(1))
    success("empty_messages", b"x", "A record of messages has no byte of them.", empty.finish())

    why = "The additional data names a tenant."
    success("tenant", TEXT, why, example(additional=TENANT))

    why = "Two runs have a session key each."
    success("two_runs", TEXT + AFTER, why, example(), after(epoch=2), epochs=(1, 2))

    one, two = Segment("keys", 0), Segment("keys", 1, epoch=2)
    one.add(one.begin(1, LINES, NAME), one.messages(1, b"one\n"))
    two.add(two.begin(1, LINES, NAME, True), two.messages(1, b"two\n"), end(1))
    segments = one.finish(False), two.finish()
    success("new_key", b"one\ntwo\n", "A run gets a new key.", *segments, epochs=(1, 2))

    why = "A run has three segments, and a source that goes on through them."
    success("three_segments", b"one\nrawtwo\nnew\nthree\n", why, *rotated())
    why = "The first segment of a run was removed, which is not noticed."
    files = {f"{number:06}.wls": rotated()[number - 1].file() for number in (2, 3)}
    success("oldest_missing", b"two\nnew\nthree\n", why, files=files)
    why = "The last segment of a run was removed, which is not noticed."
    success("latest_missing", b"one\nrawtwo\n", why, *rotated()[:2])

    recovered_successes()

    why = "The salt that fits is the third that is kept for its epoch; the first is a byte short."
    salts = {1: salt(1)[:31], "000001.salt.1": salt(2), "000001.salt.2": salt(1)}
    success("salt_beside", TEXT, why, example(), salts=salts)
    why = "The salt that fits is the last that may be kept beside another."
    success("salt_beside_16", TEXT, why, example(), salts={1: salt(2), "000001.salt.16": salt(1)})

    unknown = Segment("unknown")
    unknown.add(unknown.begin(1, LINES, NAME), b"\xc8what later writers say")
    unknown.add(b"\x80", unknown.messages(1, b"known\n"), b"\xff", end(1))
    why = "Kinds from 128 on are passed over: here 200, 128 and 255."
    success("unknown_kind", b"known\n", why, unknown.finish())

    why = "An empty file stands between two segments."
    files = [example().file(), b"", after().file()]
    success("empty_file", TEXT + AFTER, why, files=files)
    why = "A writer was killed as it wrote the header."
    files = [example().header[:-30], after().file()]
    success("header_cut", AFTER, why, files=files)
    why = "A writer was killed, and its file has zeros where its header should be."
    success("header_zeros", AFTER, why, files=[bytes(200), after().file()])

    large = Segment("large", 2**63, epoch=2**32 - 1)
    large.add(large.begin(2**64 - 1, LINES, "n" * 300), large.messages(2**64 - 1, b"large\n"))
    large.add(large.begin(300, LINES, "ü"), large.messages(300, b"l" * 20000 + b"\n", 2**63 - 1))
    large.add(end(300), end(2**64 - 1))
    files = {"1000000.wls": large.finish().file()}
    text = b"large\n" + b"l" * 20000 + b"\n"
    why = "The numbers of epoch, file, source and segment are large."
    success("large_numbers", text, why, files=files, epochs=[2**32 - 1])

    selections()


def recovered_successes():
    """Cases with segments that a killed writer left."""
    killed = unfinished()
    later = after(recovered=[(killed.writer, killed.length())], epoch=2)
    torn = batch(killed.writer, framed(killed.seal(killed.messages(1, b"torn\n"), 6)))[:-7]
    both = {"epochs": (1, 2)}
    why = "A writer was killed as it wrote a batch; a later run names its segment."
    files = [killed.cut(torn), later.file()]
    success("recovered", TEXT + AFTER, why, files=files, **both)
    why = "A writer was killed between two batches; a later run names its segment."
    success("recovered_between", TEXT + AFTER, why, files=[killed.cut(), later.file()], **both)
    why = "A later run names the segment, and was killed itself before it appended the tail."
    files = [killed.file() + torn, later.file()]
    success("recovered_without_tail", TEXT + AFTER, why, files=files, **both)
    why = "The tail of a segment that had an index is missing, and no start names it."
    files = [example().file()[:-16], after().file()]
    success("tail_missing", TEXT + AFTER, why, files=files)
    one = example()
    later = after(recovered=[(one.writer, one.length())], epoch=2)
    why = "A writer was killed as it wrote the tail; a later run names its segment."
    files = [one.cut(one.tail[:5]), later.file()]
    success("recovered_with_index", TEXT + AFTER, why, files=files, **both)

    other = Segment("other writer")
    foreign = batch(other.writer, framed(other.seal(other.messages(1, b"other\n"), 0)))
    own = batch(other.writer, framed(killed.seal(killed.messages(1, b"torn\n"), 6)))
    later = after(recovered=[(killed.writer, killed.length())], epoch=2)
    why = "Behind the whole batches are one of another segment, and one with its checksum."
    files = [killed.cut(foreign + own), later.file()]
    success("recovered_foreign", TEXT + AFTER, why, files=files, **both)

    bare = Segment("bare")
    bare.batches = []
    names = [(bare.writer, bare.length()), (killed.writer, killed.length())]
    later = after(recovered=names, epoch=2)
    why = "A later run names two segments, of which one ends after its header."
    files = [bare.cut(), killed.cut(torn), later.file()]
    success("two_recovered", TEXT + AFTER, why, files=files, **both)


def selections():
    """Cases of which only a part is asked for."""
    segment = blocks()
    text = b"a0\nb0\nb1\nb2\nc3\na4\n"
    success("blocks", text, "The index has four blocks.", segment)
    why = "An address selects all its ports, and no longer address."
    selection = {"source": "10.0.0.7"}
    success("source", b"a0\nc3\na4\n", why, segment, selection=selection)
    why = "An address with its port selects no other."
    success("source_with_port", b"a0\na4\n", why, segment, selection={"source": "10.0.0.7:5000"})
    why = "The first time is included, the second is not."
    selection = {"from_us": TIME + SECOND, "until_us": TIME + 3 * SECOND}
    success("time", b"b1\nb2\n", why, segment, selection=selection)
    selection = {"from_us": TIME + 3 * SECOND}
    success("from", b"c3\na4\n", "Messages from a time on.", segment, selection=selection)
    selection = {"until_us": TIME + SECOND}
    success("until", b"a0\nb0\n", "Messages before a time.", segment, selection=selection)
    selection = {"source": "10.0.0.7", "from_us": TIME + SECOND}
    why = "A source and a time are asked for."
    success("source_and_time", b"c3\na4\n", why, segment, selection=selection)


def header_faults():
    """Cases with a wrong header: no message of the segment comes out."""
    one = example(additional=TENANT)
    body = one.body() + one.tail

    def file(**changed):
        fields = {"epoch": 1, "writer": one.writer, "additional": TENANT}
        good = one.header[-36:-4]
        return header(**{**fields, "commitment": good, **changed}) + body

    why = "The magic has a flipped bit."
    damaged("header_magic", b"", why, file(magic=flip(MAGIC, 3)))
    why = "The epoch is another, of which there is a key; the checksum fits."
    damaged("header_epoch", b"", why, file(epoch=2), epochs=(1, 2))
    why = "The writer ID has a flipped bit; the checksum fits."
    damaged("header_writer", b"", why, file(writer=flip(one.writer, 0)))
    why = "The tenant is another; the checksum fits."
    damaged("header_additional", b"", why, file(additional=b"\1\1\0\4acmf"))
    why = "The commitment has a flipped bit; the checksum fits."
    damaged("header_commitment", b"", why, file(commitment=flip(one.header[-36:-4], 0)))
    why = "The checksum of the header has a flipped bit."
    damaged("header_checksum", b"", why, flip(one.file(), len(one.header) - 1))


def record_faults():
    """Cases in which the batch is whole, and a record in it is wrong."""

    def case(name, why, changed, released=b"first\n", at=(2, 0), **more):
        segment = example()
        records, place = segment.batches[at[0]], at[1]
        records[place : place + 1] = changed(segment, records[place])
        damaged(name, released, why, segment.file(), **more)

    why = "The ciphertext of the second record in a batch has a flipped bit."
    second = b"first\nsecond\n"
    case("record_ciphertext", why, lambda _, good: [flip(good, 30)], second, (2, 1))
    why = "The tag of a record has a flipped bit."
    case("record_tag", why, lambda _, good: [flip(good, -1)])
    why = "A record is of version 2."
    case("record_version", why, lambda _, good: [flip(good, 0, 3)])
    why = "A record of the counter that should come is missing."
    case("record_missing", why, lambda _, good: [])
    why = "A record stands there twice."
    case("record_repeated", why, lambda _, good: [good, good], b"first\nsecond\n")
    why = "A record is authentic and has the counter of the next."
    text = b"\2\1" + struct.pack(">Q", TIME) + b"second\n"
    case("record_counter", why, lambda segment, _: [segment.seal(text, 4)])
    why = "A record is authentic and of another epoch, with its key."
    other = lambda segment, _: [record(2, segment.writer, 3, text, b"")]
    case("record_epoch", why, other, epochs=(1, 2))
    why = "A record is authentic and of another writer."
    case("record_writer", why, lambda _, __: [record(1, digest("other", 16), 3, text, b"")])
    why = "A record is sealed with a tenant that the segment does not have."
    case("record_additional", why, lambda segment, _: [record(1, segment.writer, 3, text, TENANT)])

    swapped = example()
    swapped.batches[2].reverse()
    damaged("records_swapped", b"first\n", "Two records are swapped.", swapped.file())
    short = example()
    short.batches[2][0] = short.batches[2][0][:29] + bytes(15)
    damaged("record_short", b"first\n", "A record has no room for a tag.", short.file())

    long = example()
    bodies = [b"".join(map(framed, records)) for records in long.batches]
    size = len(long.batches[2][0])
    bodies[2] = bytes([size | 128, 0]) + bodies[2][1:]
    assert size < 128 and framed(long.batches[2][0])[0] == size
    body = b"".join(batch(long.writer, body) for body in bodies)
    why = "The length of a record is not in its shortest form."
    damaged("record_length_long", b"first\n", why, long.header + body + long.tail)


def payload_faults():
    """Cases in which a record is authentic and at its place, and what it says is wrong."""

    def case(name, why, *payloads, first=None):
        segment = Segment("payload", first=first)
        if first is None:
            segment.add(segment.begin(1, LINES, NAME), segment.messages(1, b"before\n"))
        segment.add(*payloads, segment.messages(1, b"behind\n"))
        segment.add(end(1))
        damaged(name, b"" if first else b"before\n", why, segment.finish().file())

    case("payload_empty", "A payload has no kind.", b"")
    case("payload_kind", "A payload has kind 6.", b"\6")
    case("payload_kind_127", "A payload has kind 127.", b"\x7f")
    case("start_twice", "A second start stands in a segment.", start("payload"))
    why = "The first record begins a source, and there is no start."
    segment = Segment("none")
    first = segment.begin(1, LINES, NAME)
    case("start_missing", why, segment.messages(1, b"one\n"), first=first)
    case("start_long", "A byte stands behind a start.", b"\x81", first=start("payload") + b"\0")
    case("end_reason", "A source ends with reason 3.", end(1, 3))
    case("end_long", "A byte stands behind an end.", end(1) + b"\0")
    case("begin_framing", "A source begins with framing 3.", segment.begin(2, 3, "name"))
    begin = b"\1\2\1\2name"
    case("begin_flag", "A source begins with 2 where 0 and 1 are allowed.", begin)
    case("begin_name", "The name of a source is not UTF-8.", b"\1\2\1\0\xff")
    begin = segment.begin(1, LINES, NAME)
    case("begin_twice", "A source begins twice in a segment.", begin)
    case("begin_after_end", "A source begins again after its end.", end(1), begin)
    case("messages_after_end", "A source sends after its end.", end(1))
    case("messages_source", "A source sends and did not begin.", segment.messages(2, b"who\n"))
    case("end_unknown", "A source ends and did not begin.", end(2))
    why = "The time of messages is cut off."
    case("messages_time", why, b"\2\1" + struct.pack(">Q", TIME)[:7])
    why = "The number of a source is not in its shortest form."
    case("messages_varint", why, b"\2\x81\0" + struct.pack(">Q", TIME) + b"long\n")
    why = "The number of a source is above 2^64 - 1."
    case("messages_varint_large", why, b"\2" + b"\xff" * 9 + b"\2" + struct.pack(">Q", TIME))
    case("close_flag", "A close says 2 where 0 and 1 are allowed.", b"\4\2")
    case("messages_after_close", "Messages stand behind the record that closes the segment.", close())
    begin = segment.begin(3, LINES, "other")
    why = "A source begins and sends behind the record that closes the segment."
    case("begin_after_close", why, close(False), begin, segment.messages(3, b"more\n"))


def segment_faults():
    """Cases in which each record that is there is right."""
    one = example()
    file, third = one.file(), one.length(2)
    why = "The checksum of a batch has a flipped bit, in a segment with an end."
    damaged("batch_checksum", b"first\n", why, flip(file, third + 4))
    why = "The last bytes of a batch are missing, in a segment with an end."
    damaged("batch_cut", b"first\n", why, file[: one.length(3) - 5] + file[one.length(3) :])
    why = "A batch is missing, in a segment with an end."
    damaged("batch_missing", b"first\n", why, file[:third] + file[one.length(3) :])
    why = "Bytes that are no batch stand before the tail of a segment with an end."
    damaged("batch_garbage", TEXT, why, file[:-16] + b"garbage" + file[-16:])
    why = "The length of a batch is longer than the file."
    damaged("batch_long", b"first\n", why, flip(file, third, 128))
    empty = unfinished()
    empty.add()
    empty.add(end(1))
    why = "A batch has no record, in a segment with an end."
    damaged("batch_empty", TEXT, why, empty.finish().file())

    why = "The tail says that the segment has an end, and there is no index."
    index = example()
    del index.batches[-1]
    damaged("index_missing", TEXT, why, index.file())
    behind = example()
    behind.add(behind.messages(1, b"behind\n"))
    why = "A record stands behind the index."
    damaged("index_followed", TEXT, why, behind.file())
    why = "A byte stands behind the tables of the index."
    long = unfinished()
    long.add(close())
    long.tail = struct.pack(">Q", long.length()) + b"wls2end\n"
    long.add(long.index() + b"\0")
    damaged("index_long", TEXT, why, long.file())
    why = "The index ends within its last block."
    short = unfinished()
    short.add(close())
    short.tail = struct.pack(">Q", short.length()) + b"wls2end\n"
    short.add(short.index()[:-3])
    damaged("index_short", TEXT, why, short.file())
    descending = unfinished()
    descending.add(descending.begin(2, LINES, "10.0.0.8:6000"), descending.messages(2, b"more\n"))
    descending.add(close())
    descending.tail = struct.pack(">Q", descending.length()) + b"wls2end\n"
    index = descending.index()
    assert index.endswith(b"\2\1\2")
    descending.add(index[:-2] + b"\2\1")
    why = "The sources of a block in the index are not ascending."
    damaged("index_descending", TEXT + b"more\n", why, descending.file())

    index_lies()

    why = "The segment has no tail, and no start names it."
    damaged("cut", TEXT, why, unfinished().file())
    why = "The end of a segment was cut off, and no start names it."
    damaged("cut_in_batch", b"first\n", why, file[: third + 20])
    why = "The segment has the tail of a recovered one, and no start names it."
    damaged("recovered_unnamed", TEXT, why, unfinished().cut())
    recovered_faults()


def index_lies():
    """Cases in which the index has the right form, and says something else than the records."""

    def case(name, why, change):
        segment = unfinished()
        segment.add(end(1))
        segment.blocks = [0, 2]
        change(segment)
        damaged(f"index_{name}", TEXT, why, segment.finish().file())

    def later(segment):
        at, time, source = segment.seen[0]
        segment.seen[0] = (at, time + 1, source)

    def of_another(segment):
        at, time, source = segment.seen[0]
        segment.seen[0] = (at, time, source + 1)

    def counts_more(segment):
        segment.count = lambda batches=None: Segment.count(segment, batches) + (batches == 2)

    def begins_later(segment):
        segment.length = lambda batches=None: Segment.length(segment, batches) + (batches == 2)

    case("time", "The index says that messages came later than they did.", later)
    case("block_source", "The index says that messages are of another source.", of_another)
    why = "A source has another name in the index."
    case("name", why, lambda one: one.sources.update({1: (LINES, b"x")}))
    why = "A source has another framing in the index."
    case("framing", why, lambda one: one.sources.update({1: (RAW, NAME.encode())}))
    why = "A source is missing in the index."
    case("source_missing", why, lambda one: one.sources.clear())
    why = "The first block of the index begins behind the first batch."
    case("first_block", why, lambda one: one.blocks.pop(0))
    case("counter", "A block of the index has a counter that is too large.", counts_more)
    case("offset", "A block of the index begins within a batch.", begins_later)


def recovered_faults():
    """Cases with segments that a killed writer left."""
    killed = unfinished()
    later = after(recovered=[(killed.writer, killed.length())]).file()
    written, released = killed.file() + b"torn", b"first\nsecond\nthird\n"
    for name, length, text, why in [
        ("short", killed.length(3), released, "The tail names a batch less than a start does."),
        ("in_batch", killed.length(3) + 9, released, "The tail names a length within a batch."),
        ("long", killed.length() + 2, TEXT, "The tail names more than the whole batches."),
        ("beyond", 2**32, TEXT, "The tail names more than the file has."),
    ]:
        tail = struct.pack(">Q", length) + b"wls2cut\n"
        damaged(f"recovered_tail_{name}", text, why, b"", files=[written + tail, later])

    killed = unfinished()
    at = killed.length(2)
    named = after(recovered=[(killed.writer, at)]).file()
    wrong = flip(killed.file(), at + 20)
    tail = struct.pack(">Q", at) + b"wls2cut\n"
    why = "A batch has a flipped bit and another follows; a tail and a start name what is before it."
    damaged("recovered_damage", b"first\n", why, b"", files=[wrong + tail, named])
    why = "The same without the tail."
    damaged("recovered_damage_open", b"first\n", why, b"", files=[wrong, named])
    why = "The length of a batch has a flipped bit and another follows; a start names the rest."
    wrong = flip(killed.file(), at)
    damaged("recovered_damage_length", b"first\n", why, b"", files=[wrong, named])

    killed = unfinished()
    names = [(killed.writer, killed.length())]
    del killed.batches[-1]
    why = "A later start names the segment with a batch more than it has."
    files = [killed.cut(), after(recovered=names).file()]
    damaged("recovered_length", released, why, b"", files=files)
    names = [(digest("other", 16), killed.length())]
    why = "A later start names another segment with this length."
    files = [killed.cut(), after(recovered=names).file()]
    damaged("recovered_other", released, why, b"", files=files)
    why = "A segment without an end is named by an earlier start, and by no later one."
    files = [after(recovered=[(killed.writer, killed.length())]).file(), killed.cut()]
    write("recovered_earlier", "damaged", AFTER + released, why, files)


def folder_faults():
    """Cases in which each segment is right by itself."""
    first, second, third = (segment.file() for segment in rotated())
    why = "The second of three segments of a run is missing."
    files = {"000001.wls": first, "000003.wls": third, "000004.wls": after().file()}
    damaged("segment_missing", b"one\nrawnew\nthree\n", why, b"", files=files)
    why = "The second of three segments of a run is an empty file."
    files = [first, b"", third, after().file()]
    damaged("segment_emptied", b"one\nrawnew\nthree\n", why, b"", files=files)
    why = "A segment stands there twice; the second is refused at its start."
    files = [first, second, third, second, after().file()]
    damaged("segment_copied", b"one\nrawtwo\nnew\nthree\n", why, b"", files=files)

    why = "The salt of a segment's epoch is missing."
    files = [example().file(), after(epoch=2).file()]
    damaged("salt_missing", b"", why, b"", files=files, salts={2: salt(2)})
    why = "The salt of another epoch stands in place of a segment's."
    damaged("salt_other", b"", why, b"", files=files, salts={1: salt(2), 2: salt(2)})
    why = "The salt that fits has a number above those that are kept beside another."
    salts = {1: salt(2), "000001.salt.17": salt(1), 2: salt(2)}
    damaged("salt_beside_17", b"", why, b"", files=files, salts=salts)
    why = "The salt of a segment's epoch is a byte short."
    damaged("salt_short", b"", why, b"", files=files, salts={1: salt(1)[:31], 2: salt(2)})


README = """\
# Folders of sealed segments

Folders by `docs/spec/stream-v2.md`, made on 2026-11-26 by another implementation: `make.py` here, in Python 3.11 with `cryptography` 50, from
the text of the specification (licence: the project's own). Frozen: these folders open for ever as they do now.

Each folder is a case: segments, the salts of their keys, and `case.json`. The shared key is the 32 bytes 0, 1, 2, … 31.

| key of `case.json` | what |
|---|---|
| `expect` | `success`, or `damaged`: the reader has to report something |
| `messages` | in hexadecimal, what comes out of all segments in order: of a wrong one what stands before its fault, and then the next segments |
| `selection` | may be missing. Only messages of `source`, a whole name or one that goes on with `:`, from `from_us` on, and before `until_us` |
| `why` | what the case is about |

| file | SHA-256 |
|---|---|
"""


def readme():
    """Writes the list of all files."""
    files = [path for path in sorted(HERE.rglob("*")) if path.is_file()]
    text = README
    for path in files:
        if path != HERE / "README.md":
            checksum = hashlib.sha256(path.read_bytes()).hexdigest()
            text += f"| `{path.relative_to(HERE).as_posix()}` | {checksum} |\n"
    (HERE / "README.md").write_text(text)


if __name__ == "__main__":
    successes()
    header_faults()
    record_faults()
    payload_faults()
    segment_faults()
    folder_faults()
    readme()
