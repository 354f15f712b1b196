#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Serves the files of a directory, its argument, like a debuginfod server, on a port of loopback. Prints the port, then each
request."""
import functools
import http.server
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, form, *args):
        print(self.path, flush=True)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
print("port", server.server_address[1], flush=True)
server.serve_forever()
