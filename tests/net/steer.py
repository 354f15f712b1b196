#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A proxy that sends commands: steer.py LISTEN CONNECT passes frames between connect and serve, and reads lines on stdin.
"tune PAUSED DEPTH MIN MAX" sends a command to the server. The answer is printed and not passed to the client: "ok" or the
reason. "hold": from now on the client gets only pings; prints "ok", and "scan" when the client asks for a scan."""
import select
import socket
import struct
import sys


def frame(kind, body):
    return struct.pack("<IBBBB", len(body), kind, 0, 0, 0) + body


class Pipe:
    """Takes bytes, and passes whole frames on."""

    def __init__(self, to):
        self.to = to
        self.data = b""
        self.shows_scans = self.is_held = False

    def feed(self, data):
        self.data += data
        while len(self.data) >= 8:
            length, kind = struct.unpack("<IB", self.data[:5])
            if len(self.data) < 8 + length:
                return
            body, self.data = self.data[8:8 + length], self.data[8 + length:]
            if self.shows_scans and kind == 22:
                print("scan", flush=True)
            if self.is_held and kind != 21:
                continue
            if kind == 71:
                print("ok" if body[0] else body[1:].decode(errors="replace"), flush=True)
            else:
                self.to.sendall(frame(kind, body))


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    client, _ = listener.accept()
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[2])
    pipes = {client: Pipe(server), server: Pipe(client)}
    while True:
        for s in select.select([client, server, sys.stdin], [], [])[0]:
            if s is sys.stdin:
                words = sys.stdin.readline().split()
                if words == ["hold"]:
                    pipes[server].is_held = pipes[client].shows_scans = True
                    print("ok", flush=True)
                elif words:
                    paused, depth, least, most = map(int, words[1:])
                    # This goes between two frames, because the pipe of the client passes whole frames only.
                    server.sendall(frame(17, struct.pack("<BBQQ", paused, depth, least, most)))
                continue
            data = s.recv(65536)
            if not data:
                return
            pipes[s].feed(data)


main()
