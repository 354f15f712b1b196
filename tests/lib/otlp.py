# SPDX-License-Identifier: GPL-2.0-or-later
# Reads a request of OTLP profiles (opentelemetry-proto 1.11.0, v1development) by its public description, checks its
# references, prints it as JSON: python3 otlp.py FILE.gz. Nothing of heaptap is used.
import gzip
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pprof import message, varint  # noqa: E402


def unpacked(data):
    """A message that has a field of the type fixed64, 3, as one without it, and that number."""
    out, at, time = b"", 0, 0
    while at < len(data):
        begin = at
        key, at = varint(data, at)
        if key & 7 == 1:
            assert key >> 3 == 3, "a fixed64 that is no time"
            time, at = int.from_bytes(data[at:at + 8], "little"), at + 8
            continue
        if key & 7 == 2:
            size, at = varint(data, at)
            at += size
        else:
            _, at = varint(data, at)
        out += data[begin:at]
    return out, time


def any_value(data):
    m = message(data, {3: "number"}, [(1, "text")])
    return m["text"][0].decode("utf-8") if m["text"] else m["number"]


def read(path):
    with gzip.open(path) as f:
        top = message(f.read(), {}, [(1, "resource"), (2, "dictionary")])
    assert len(top["dictionary"]) == 1
    tables = message(top["dictionary"][0], {}, [(1, "mapping"), (2, "location"), (3, "function"), (4, "link"),
                                                (5, "string"), (6, "attribute"), (7, "stack")])
    for name in ("mapping", "location", "function", "string", "attribute", "stack"):
        assert tables[name][0] == b"", "the first item of a table is not empty: " + name
    strings = [s.decode("utf-8") for s in tables["string"]]
    assert len(set(strings)) == len(strings), "a string is there twice"

    def attribute(at):
        assert at, "an attribute that is not set"
        m = message(tables["attribute"][at], {1: "key", 3: "unit"}, [(2, "value")])
        return strings[m["key"]], any_value(m["value"][0])

    def line(data):
        at = message(data, {1: "function", 2: "line", 3: "column"})
        f = message(tables["function"][at["function"]], {1: "name", 2: "system", 3: "file", 4: "start"})
        return {"function": strings[f["name"]], "system_name": strings[f["system"]], "file": strings[f["file"]],
                "line": at["line"]}

    def frame(at):
        assert at, "a location that is not set"
        place = message(tables["location"][at], {1: "mapping", 2: "address"}, [(3, "line")], [(4, "attribute")])
        m = message(tables["mapping"][place["mapping"]], {1: "start", 2: "limit", 3: "offset", 4: "file"}, (),
                    [(5, "attribute")])
        assert not m["limit"] or m["start"] <= place["address"] < m["limit"], "an address outside its mapping"
        return {"module": strings[m["file"]], "build_id": dict(attribute(i) for i in m["attribute"]),
                "lines": [line(i) for i in place["line"]]}

    def sample(data):
        s = message(data, {1: "stack", 3: "link"}, (), [(2, "attribute"), (4, "values")])
        assert s["stack"] and len(s["values"]) == 1
        stack = message(tables["stack"][s["stack"]], {}, (), [(1, "location")])
        return {"value": s["values"][0], "attributes": dict(attribute(i) for i in s["attribute"]),
                "frames": [frame(i) for i in stack["location"]]}

    def profile(data):
        data, time = unpacked(data)
        p = message(data, {4: "duration", 6: "period"}, [(1, "type"), (2, "sample"), (5, "period_type")])
        types = [message(t, {1: "type", 2: "unit"}) for t in p["type"] + p["period_type"]]
        assert len(types) == 2
        return {"type": strings[types[0]["type"]], "unit": strings[types[0]["unit"]], "time": time,
                "period": p["period"], "samples": [sample(i) for i in p["sample"]]}

    def resource(data):
        r = message(data, {}, [(1, "resource"), (2, "scope")])
        pairs = [message(i, {}, [(1, "key"), (2, "value")])
                 for i in message(r["resource"][0], {}, [(1, "attribute")])["attribute"]]
        scope = message(r["scope"][0], {}, [(1, "scope"), (2, "profile")])
        name = message(scope["scope"][0], {}, [(1, "name"), (2, "version")])
        return {"attributes": {p["key"][0].decode(): any_value(p["value"][0]) for p in pairs},
                "scope": name["name"][0].decode(), "profiles": [profile(i) for i in scope["profile"]]}

    return [resource(i) for i in top["resource"]]


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout, indent=1)
