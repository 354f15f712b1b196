#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A link that can be cut: proxy.py LISTEN CONNECT. SIGUSR1 cuts all connections and makes it refuse others, SIGUSR2
mends it; SIGTERM ends it. Both ends are UNIX sockets by path, or HOST:PORT."""
import os
import select
import signal
import socket
import sys

cut = False


def address(text):
    if text.startswith("/"):
        return socket.AF_UNIX, text
    host, port = text.rsplit(":", 1)
    return socket.AF_INET, (host, int(port))


def on_cut(sig, frame):
    global cut
    cut = sig == signal.SIGUSR1


def main():
    signal.signal(signal.SIGUSR1, on_cut)
    signal.signal(signal.SIGUSR2, on_cut)
    family, where = address(sys.argv[1])
    listener = socket.socket(family)
    if family == socket.AF_UNIX:
        os.umask(0o177)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(where)
    listener.listen()
    peers = {}
    while True:
        ready, _, _ = select.select([listener] + list(peers), [], [], 0.05)
        if cut:
            for s in list(peers):
                s.close()
            peers.clear()
        for s in ready:
            if s is listener:
                client, _ = listener.accept()
                if cut:
                    client.close()
                    continue
                family, where = address(sys.argv[2])
                server = socket.socket(family)
                server.connect(where)
                peers[client], peers[server] = server, client
                continue
            if s not in peers:
                continue
            try:
                data = s.recv(65536)
                if data:
                    peers[s].sendall(data)
                    continue
            except OSError:
                pass
            other = peers.pop(s)
            peers.pop(other, None)
            s.close()
            other.close()


main()
