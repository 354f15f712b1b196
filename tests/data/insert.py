#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording as a later heaptap may write it: insert.py FROM TO [MAJOR]. The minor version is larger; behind the first chunk are a
chunk of a kind that is not known, and a chunk with a record of such a kind and a mark that has more fields than now."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net"))
from liar import crc32c  # noqa: E402


def chunk(number, kind, flags, length, stored):
    rest = struct.pack("<IIIBBH", len(stored), length, number, kind, flags, 0) + stored
    return struct.pack("<I", crc32c(rest)) + rest


def chunks(data):
    at = 16
    while at < len(data):
        stored, length, _, kind, flags, _ = struct.unpack("<IIIBBH", data[at + 4:at + 20])
        yield kind, flags, length, data[at + 20:at + 20 + stored]
        at += 20 + stored


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def record(kind, body):
    return b"\0" + bytes([kind]) + varint(len(body)) + body


with open(sys.argv[1], "rb") as f:
    old = f.read()
major, minor = struct.unpack("<HH", old[8:12])
start = old[:8] + struct.pack("<HH", int(sys.argv[3]) if len(sys.argv) > 3 else major, minor + 1)
# Time, what, text, PID, TID, address; then two fields of later.
mark = record(21, varint(1) + varint(0) + varint(5) + b"later" + 3 * varint(0) + varint(1 << 40) + varint(7))
added = record(200, b"anything") + mark
parts = list(chunks(old))
parts[1:1] = [(99, 0, 4, b"some"), (1, 0, len(added), added)]
with open(sys.argv[2], "wb") as f:
    f.write(start + struct.pack("<I", crc32c(start)))
    for i, part in enumerate(parts):
        f.write(chunk(i, *part))
