#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Peers that serve must not trust: peers.py KIND SOCKET. Exits with 0 when the server did what it should."""
import os
import random
import socket
import struct
import sys
import time

HELLO = b"heaptap\n" + struct.pack("<HHI", 10, 0, 0) + bytes(48)


def connect():
    path = sys.argv[2]
    if path.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
    else:
        host, port = path.rsplit(":", 1)
        s = socket.create_connection((host, int(port)))
    s.settimeout(20)
    return s


def frame(kind, body=b""):
    return struct.pack("<IBBBB", len(body), kind, 0, 0, 0) + body


def tune_body(flags, depth, least=0, most=0):
    return struct.pack("<BBQQ", flags, depth, least, most)


def start_body(depth, flags=0, least=0, most=0, nr_had=0, max_followed=0):
    return tune_body(flags, depth, least, most) + struct.pack("<BIQQH", 0, max_followed, 0, 0, nr_had)


def closed(s):
    """Reads until the server closes."""
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def send(s, data):
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def random_bytes():
    rng = random.Random(1)
    for _ in range(50):
        s = connect()
        send(s, rng.randbytes(rng.randrange(1, 3000)))
        # A few bytes may still be the beginning of a frame.
        s.shutdown(socket.SHUT_WR)
        closed(s)


def http():
    s = connect()
    send(s, b"GET / HTTP/1.1\r\nHost: board\r\n\r\n")
    closed(s)


def tls():
    s = connect()
    send(s, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
    closed(s)


def slow():
    """Sends a byte every half second: the deadline is for the whole handshake."""
    s = connect()
    start = time.monotonic()
    for byte in frame(1, HELLO):
        try:
            s.sendall(bytes([byte]))
        except OSError:
            break
        time.sleep(0.5)
    closed(s)
    assert time.monotonic() - start < 20


def half_open():
    s = connect()
    closed(s)


def many():
    """Makes 10,000 connections one after the other, and closes most of them at once."""
    keep = []
    for i in range(10000):
        s = connect()
        if i % 100 == 0:
            keep.append(s)
        else:
            s.close()
    for s in keep:
        s.close()


def reset():
    for i in range(100):
        s = connect()
        send(s, frame(1, HELLO)[: i % 72])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()


def early():
    """Sends commands before the proof."""
    for kind in list(range(2, 32)) + [64, 255]:
        s = connect()
        send(s, frame(kind, bytes(8)))
        closed(s)


def version():
    s = connect()
    send(s, frame(1, HELLO[:8] + struct.pack("<H", 999) + HELLO[10:]))
    text = b""
    try:
        while chunk := s.recv(4096):
            text += chunk
    except ConnectionResetError:
        pass
    assert b"version" in text, text


def shake(s):
    send(s, frame(1, HELLO))
    read_frame(s)
    send(s, frame(3, bytes(32)))
    kind, _ = read_frame(s)
    assert kind == 4, kind


def read_frame(s):
    head = b""
    while len(head) < 8:
        more = s.recv(8 - len(head))
        if not more:
            raise EOFError
        head += more
    length, kind = struct.unpack("<IB", head[:5])
    body = b""
    while len(body) < length:
        body += s.recv(length - len(body))
    return kind, body


def commands():
    """Does the handshake, then sends nonsense: sizes, counts, unknown kinds, blocks without a scan."""
    rng = random.Random(2)
    bodies = [b"", b"\xff" * 7, b"\xff" * 200, bytes(20), start_body(64, nr_had=65535), start_body(255),
              start_body(64, nr_had=3) + bytes(7), start_body(64, 2), start_body(64, 0, 9, 8), tune_body(1, 255),
              tune_body(0, 8, 9, 8), tune_body(1, 8)]
    for kind in range(16, 32):
        for body in bodies + [rng.randbytes(rng.randrange(1, 60))]:
            s = connect()
            shake(s)
            if rng.random() < 0.3:
                send(s, frame(16, start_body(16)))
            send(s, frame(kind, body))
            send(s, frame(200))
            closed(s)
    s = connect()
    shake(s)
    send(s, struct.pack("<IBBBB", 0xFFFFFFFF, 17, 0, 0, 0))
    closed(s)


def stuck():
    """Asks for all events and reads nothing, until its standard input ends."""
    s = connect()
    shake(s)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    send(s, frame(16, start_body(64)))
    print("stuck", flush=True)
    sys.stdin.read()


def second():
    """Connects while another client is served."""
    s = connect()
    send(s, frame(1, HELLO))
    read_frame(s)
    send(s, frame(3, bytes(32)))
    kind, body = read_frame(s)
    assert kind == 5 and b"another client" in body, (kind, body)
    closed(s)


def kill():
    """Asks the server to kill the target, and prints the answer."""
    s = connect()
    shake(s)
    send(s, frame(16, start_body(16)))
    send(s, frame(20))
    while True:
        kind, body = read_frame(s)
        if kind in (66, 70):
            print(body.decode(errors="replace"))
            break


globals()[sys.argv[1]]()
