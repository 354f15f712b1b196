#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""file_server.py FILE DIRECTORY SECONDS: mounts FILE at DIRECTORY, as its only file, by the kernel's FUSE (root).

While the file DIRECTORY.hangs exists, reads are not answered, but SECONDS later at the latest: a read that hangs for
ever can hold the whole machine. Goes into the background when it serves, and ends when DIRECTORY is unmounted.
"""
import ctypes
import os
import select
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, STATFS, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 17, 14, 15, 18, 25, 26, 36, 42)
ROOT, THE_FILE = 1, 2
FOREVER_S = 1 << 20
LONGEST_S = 100  # a test that ends early leaves its server behind
KEEP_CACHE = 2  # an open drops no pages


def attributes(node, size):
    """struct fuse_attr"""
    mode, links = (0o40755, 2) if node == ROOT else (0o100755, 1)
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0,
                       4096, 0)


class Server:
    def __init__(self, path, directory, seconds):
        with open(path, "rb") as f:
            self.data = f.read()
        self.name = os.path.basename(path).encode()
        self.flag = directory + ".hangs"
        self.seconds = seconds
        self.since = None  # the first read that was not answered at once
        self.waiting = []  # reads: unique, offset, size
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"heaptap-test", directory.encode(), b"fuse", 0, options):
            sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")

    def answer(self, unique, body=b"", error=0):
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
        except OSError:
            pass  # the kernel no longer wants it

    def size_of(self, node):
        return len(self.data) if node == THE_FILE else 0

    def answer_reads(self):
        for unique, offset, size in self.waiting:
            self.answer(unique, self.data[offset:offset + size])
        self.waiting = []

    def take(self, message):
        op, unique, node = struct.unpack_from("<IQQ", message, 4)
        body = message[40:]
        if op == INIT:
            # Without reading ahead: pages that nobody has read are not in the kernel's cache.
            self.answer(unique, struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 16, 12, 4096, 1, 1, 0, 0) + bytes(28))
        elif op == LOOKUP:
            if body.rstrip(b"\0") != self.name:
                self.answer(unique, error=2)
                return
            self.answer(unique, struct.pack("<QQQQII", THE_FILE, 0, FOREVER_S, FOREVER_S, 0, 0) +
                        attributes(THE_FILE, len(self.data)))
        elif op == GETATTR:
            self.answer(unique, struct.pack("<QII", FOREVER_S, 0, 0) + attributes(node, self.size_of(node)))
        elif op == OPEN:
            self.answer(unique, struct.pack("<QII", 1, KEEP_CACHE, 0))
        elif op == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            self.waiting.append((unique, offset, size))
        elif op == STATFS:
            self.answer(unique, struct.pack("<QQQQQIIII", 0, 0, 0, 1, 0, 4096, 255, 4096, 0) + bytes(24))
        elif op in (RELEASE, FLUSH):
            self.answer(unique)
        elif op not in (FORGET, BATCH_FORGET, INTERRUPT):
            self.answer(unique, error=38)

    def hangs(self):
        if not os.path.exists(self.flag):
            return False
        self.since = self.since or time.monotonic()
        return time.monotonic() < self.since + self.seconds

    def run(self):
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            if self.waiting and not self.hangs():
                self.answer_reads()
            if not select.select([self.fd], [], [], 0.05 if self.waiting else 1)[0]:
                continue
            try:
                self.take(os.read(self.fd, 1 << 20))
            except OSError as e:
                if e.errno == 19:  # unmounted
                    return
                if e.errno not in (2, 4):
                    raise


server = Server(sys.argv[1], sys.argv[2], float(sys.argv[3]))
if os.fork():
    os._exit(0)
server.run()
