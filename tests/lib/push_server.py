#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""push_server.py [STATUS]: takes profiles as Pyroscope's /ingest does, and OTLP; answers with STATUS (200).

Prints its port, then a line of JSON for each upload; the profile is N.pb.gz, or N.otlp.gz."""
import email.parser
import email.policy
import http.server
import json
import sys
import urllib.parse

status = int(sys.argv[1]) if len(sys.argv) > 1 else 200
count = 0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global count
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = urllib.parse.urlsplit(self.path)
        count += 1
        if self.headers["Content-Type"] == "application/x-protobuf":
            assert self.headers["Content-Encoding"] == "gzip"
            with open("%d.otlp.gz" % count, "wb") as out:
                out.write(body)
            print(json.dumps({"path": url.path, "query": url.query}), flush=True)
            self.send_response(status)
            self.end_headers()
            return
        head = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n"
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        parts = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                 for part in form.iter_parts()}
        with open("%d.pb.gz" % count, "wb") as out:
            out.write(parts["profile"])
        print(json.dumps({"path": url.path, "query": dict(urllib.parse.parse_qsl(url.query)), "parts": sorted(parts),
                          "types": json.loads(parts["sample_type_config"])}), flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
