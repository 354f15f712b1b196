#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Serves the files of a directory, its argument, like a debuginfod server, on a port of loopback. Prints the port, then each
request. A second argument: a number answers each request with this HTTP status, "silent" never answers, "slow" sends 64 KiB of
10 MiB and then waits."""
import functools
import http.server
import sys
import threading

HOW = sys.argv[2] if len(sys.argv) > 2 else ""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, form, *args):
        print(self.path, flush=True)

    def do_GET(self):
        if not HOW:
            super().do_GET()
        elif HOW.isdigit():
            self.send_error(int(HOW))
        else:
            self.log_message("")
            if HOW == "slow":
                self.send_response(200)
                self.send_header("Content-Length", str(10 << 20))
                self.end_headers()
                self.wfile.write(bytes(64 << 10))
            threading.Event().wait()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
print("port", server.server_address[1], flush=True)
server.serve_forever()
