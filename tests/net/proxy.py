#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A proxy that is slow, stops, or closes connections: proxy.py LISTEN CONNECT [delay=MS] [jitter=MS] [segment=BYTES]
[rate=BYTES] [loss=N]. Both ends are paths of UNIX sockets, or HOST:PORT. In each direction bytes are delayed by delay
and up to jitter more, in order, sent in pieces of at most segment, and at most rate a second. One piece in N is late by
0.2 to 1 s, and with it all behind it, as a segment that TCP must send again. SIGHUP stops all bytes on the way. SIGUSR1
closes all connections and refuses new ones. SIGUSR2 ends both. SIGTERM ends the proxy. It prints "ready" when it
listens."""
import os
import random
import select
import signal
import socket
import sys
import time

ROOM = 256 << 10  # bytes on the way in one direction; the sender must wait when it is full

state = {"cut": False, "stalled": False}
settings = {"delay": 0, "jitter": 0, "segment": 65536, "rate": 0, "loss": 0}
rng = random.Random(1)


def address(text):
    if text.startswith("/"):
        return socket.AF_UNIX, text
    host, port = text.rsplit(":", 1)
    return socket.AF_INET, (host, int(port))


def on_signal(sig, frame):
    state["cut"] = sig == signal.SIGUSR1
    state["stalled"] = sig == signal.SIGHUP


class Way:
    """One direction of a connection."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.pieces = []  # (time to send, bytes)
        self.size = 0
        self.free = 0.0  # when the link has sent all that it has
        self.is_over = False

    def wants_more(self):
        return not self.is_over and self.size < ROOM

    def is_due(self, now):
        return self.pieces and self.pieces[0][0] <= now

    def take(self, now):
        data = self.source.recv(65536)
        self.is_over = not data
        due = now + (settings["delay"] + rng.random() * settings["jitter"]) / 1000
        if self.pieces:
            due = max(due, self.pieces[-1][0])
        for i in range(0, len(data), settings["segment"]):
            piece = data[i:i + settings["segment"]]
            self.free = max(self.free, due)
            if settings["loss"] and rng.randrange(settings["loss"]) == 0:
                self.free += 0.2 + rng.random() * 0.8
            if settings["rate"]:
                self.free += len(piece) / settings["rate"]
            due = self.free
            self.pieces.append((due, piece))
        self.size += len(data)

    def give(self):
        due, data = self.pieces[0]
        sent = self.sink.send(data)
        self.size -= sent
        if sent < len(data):
            self.pieces[0] = (due, data[sent:])
        else:
            self.pieces.pop(0)

    def has_ended(self):
        return self.is_over and not self.pieces


def new_ways(listener):
    client, _ = listener.accept()
    if state["cut"]:
        client.close()
        return []
    family, where = address(sys.argv[2])
    server = socket.socket(family)
    try:
        server.connect(where)
    except OSError:
        client.close()
        return []
    for s in (client, server):
        s.setblocking(False)
        if s.family == socket.AF_INET:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return [Way(client, server), Way(server, client)]


def move(ways, readable, writable, now):
    """Moves bytes. Returns the connections that have ended."""
    over = set()
    for way in ways:
        try:
            if way.source in readable and way.wants_more():
                way.take(now)
            if way.sink in writable and way.is_due(now):
                way.give()
        except BlockingIOError:
            pass
        except OSError:
            over |= {way.source, way.sink}
        if way.has_ended():
            over |= {way.source, way.sink}
    return over


def main():
    for word in sys.argv[3:]:
        name, value = word.split("=")
        settings[name] = int(value)
    for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        signal.signal(sig, on_signal)
    family, where = address(sys.argv[1])
    listener = socket.socket(family)
    if family == socket.AF_UNIX:
        os.umask(0o177)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(where)
    listener.listen()
    print("ready", flush=True)
    ways = []
    while True:
        now = time.monotonic()
        moving = [] if state["stalled"] else ways
        sources = [way.source for way in moving if way.wants_more()]
        sinks = [way.sink for way in moving if way.is_due(now)]
        dues = [way.pieces[0][0] - now for way in moving if way.pieces and not way.is_due(now)]
        wait = min([0.05] + dues)
        readable, writable, _ = select.select([listener] + sources, sinks, [], wait)
        over = {way.source for way in ways} if state["cut"] else move(moving, readable, writable, time.monotonic())
        for s in over:
            s.close()
        ways = [way for way in ways if way.source not in over]
        if listener in readable:
            ways += new_ways(listener)


main()
