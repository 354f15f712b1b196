#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that lies: liar.py LISTEN CONNECT OLD=NEW... passes on the stream of a real server. In its records OLD is replaced by
NEW (equal length, \\xNN as in Python), and checksums are corrected. "flip=SEED" flips random bits of the server's bytes and
does not correct checksums; "garble=SEED" changes random bytes and corrects them."""
import ctypes
import random
import select
import socket
import struct
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


# Chunks are packed by zstd, with the lengths of their columns (user/stream/stream_split.h) in front.
ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_compress.restype = ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
COLUMNS = 4 * 19


def zstd(function, data, room, *level):
    out = ctypes.create_string_buffer(room)
    size = function(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), *level)
    assert size <= room, size
    return out.raw[:size]


class Liar:
    def __init__(self, lies):
        self.frames = b""
        self.stream = b""
        self.lies = []
        self.flips = self.garbles = None
        for lie in lies:
            old, new = lie.split("=", 1)
            if old == "flip":
                self.flips = random.Random(new)
            elif old == "garble":
                self.garbles = random.Random(new)
            else:
                new = new.encode().decode("unicode_escape").encode("latin1")
                assert len(old) == len(new), (old, new)
                self.lies.append((old.encode(), new))

    def chunk(self, chunk):
        body = chunk[20:]
        is_packed = chunk[17] == 3
        if is_packed:
            body = zstd(ZSTD.ZSTD_decompress, body, struct.unpack("<I", chunk[8:12])[0] + COLUMNS)
        for old, new in self.lies:
            body = body.replace(old, new)
        if self.garbles and body and self.garbles.random() < 0.5:
            at = self.garbles.randrange(COLUMNS if is_packed else 0, len(body))
            body = body[:at] + bytes([self.garbles.randrange(256)]) + body[at + 1:]
        if is_packed:
            body = zstd(ZSTD.ZSTD_compress, body, len(body) + 1024, 2)
        rest = struct.pack("<I", len(body)) + chunk[8:20] + body
        return struct.pack("<I", crc32c(rest)) + rest

    def pass_on(self, data):
        """Takes bytes of the server, and returns bytes for the client. A chunk ends where a frame ends."""
        self.frames += data
        out = b""
        while len(self.frames) >= 8:
            length, kind = struct.unpack("<IB", self.frames[:5])
            if len(self.frames) < 8 + length:
                break
            body, self.frames = self.frames[8:8 + length], self.frames[8 + length:]
            if kind == 64 and length > 16:
                stored = struct.unpack("<I", body[4:8])[0]
                assert stored + 20 == length, (stored, length)
                body = self.chunk(body)
            frame = struct.pack("<IBBBB", len(body), kind, 0, 0, 0) + body
            if self.flips and self.flips.random() < 0.2:
                at = self.flips.randrange(len(frame))
                frame = frame[:at] + bytes([frame[at] ^ 1 << self.flips.randrange(8)]) + frame[at + 1:]
            out += frame
        return out


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(sys.argv[2])
        liar = Liar(sys.argv[3:])
        while True:
            ready, _, _ = select.select([client, server], [], [])
            try:
                if client in ready:
                    data = client.recv(65536)
                    if not data:
                        break
                    server.sendall(data)
                if server in ready:
                    data = server.recv(65536)
                    if not data:
                        break
                    client.sendall(liar.pass_on(data))
            except OSError:
                break
        client.close()
        server.close()


if __name__ == "__main__":
    main()
