#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""slow_clients.py URL N: opens N connections, and sends a byte of a request on each of them now and then."""
import resource
import socket
import sys
import time
import urllib.parse

count = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
address = urllib.parse.urlsplit(sys.argv[1])
clients = []
for _ in range(count):
    client = socket.create_connection((address.hostname, address.port), timeout=60)
    client.sendall(b"GET /metr")
    client.setblocking(False)
    clients.append(client)
print("ready", flush=True)
while True:
    for client in clients:
        try:
            client.send(b"i")
        except OSError:
            pass
    time.sleep(1)
