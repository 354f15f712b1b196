# SPDX-License-Identifier: GPL-2.0-or-later
"""A redis-server of its own for a benchmark, on a socket in a directory that goes with it."""
import contextlib
import os
import re
import subprocess
import tempfile
import time


def wait_for(done):
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    raise SystemExit("own_redis: waited in vain")


class OwnRedis:
    def __init__(self, pid, socket):
        self.pid, self.socket = pid, socket

    def ask(self, *command):
        return subprocess.run(["redis-cli", "-s", self.socket, *command], check=True, capture_output=True, text=True).stdout

    def nr_commands(self):
        return int(re.search(r"total_commands_processed:(\d+)", self.ask("info", "stats"))[1])

    def load(self, *options):
        """The command that loads it with SETs by 10 clients."""
        return ["redis-benchmark", "-s", self.socket, "-c", "10", "-r", "100000", "-d", "200", "-t", "set", *options]


@contextlib.contextmanager
def own_redis():
    with tempfile.TemporaryDirectory() as home:
        socket = os.path.join(home, "socket")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
                                   "--enable-debug-command", "yes", "--dir", home], stdout=subprocess.DEVNULL)
        try:
            wait_for(lambda: os.path.exists(socket))
            yield OwnRedis(server.pid, socket)
        finally:
            server.kill()
            server.wait()
