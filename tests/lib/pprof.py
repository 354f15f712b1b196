# SPDX-License-Identifier: GPL-2.0-or-later
# Reads profiles of pprof by the public description of profile.proto, checks their references, prints them as JSON:
# python3 pprof.py FILE.pb.gz. Nothing of heaptap is used.
import gzip
import json
import sys

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        assert shift < 70, "a number of more than ten bytes"


def fields(data):
    """The fields of a message as (number, value): value is a number, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind == BYTES:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field ends behind the message"
        else:
            raise ValueError("a wire type that profile.proto has not: %d" % kind)
        yield key >> 3, value


def numbers(value):
    """A repeated number, packed or alone."""
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out


def message(data, single, repeated=(), packed=()):
    """A message as a dictionary, with the names of its fields."""
    out = {name: 0 for name in single.values()}
    out.update({name: [] for _, name in list(repeated) + list(packed)})
    lists, packs = dict(repeated), dict(packed)
    for number, value in fields(data):
        if number in packs:
            out[packs[number]] += numbers(value)
        elif number in lists:
            out[lists[number]].append(value)
        elif number in single:
            assert isinstance(value, int), "field %d is no number" % number
            out[single[number]] = value
        else:
            raise ValueError("a field that profile.proto has not: %d" % number)
    return out


def read(path):
    with gzip.open(path) as f:
        top = message(
            f.read(),
            {7: "drop_frames", 8: "keep_frames", 9: "time_nanos", 10: "duration_nanos", 12: "period",
             14: "default_sample_type"},
            [(1, "sample_type"), (2, "sample"), (3, "mapping"), (4, "location"), (5, "function"),
             (6, "string"), (11, "period_type")],
            [(13, "comment")])
    strings = [s.decode("utf-8") for s in top["string"]]
    assert strings[0] == "", "the first string is not empty"
    assert len(set(strings)) == len(strings), "a string is there twice"

    def items(name, *layout):
        found = {}
        for data in top[name]:
            item = message(data, *layout)
            assert item["id"] and item["id"] not in found, "id of " + name
            found[item["id"]] = item
        return found

    def value_type(data):
        m = message(data, {1: "type", 2: "unit"})
        return strings[m["type"]] + "/" + strings[m["unit"]]

    def label(data):
        m = message(data, {1: "key", 2: "str", 3: "num", 4: "num_unit"})
        return strings[m["key"]], strings[m["str"]] if m["str"] else m["num"]

    mappings = items("mapping", {
        1: "id", 2: "start", 3: "limit", 4: "offset", 5: "filename", 6: "build_id", 7: "has_functions",
        8: "has_filenames", 9: "has_line_numbers", 10: "has_inline_frames"})
    functions = items("function", {1: "id", 2: "name", 3: "system_name", 4: "filename", 5: "start_line"})
    locations = items("location", {1: "id", 2: "mapping_id", 3: "address", 5: "is_folded"}, [(4, "line")])
    for m in mappings.values():
        m["filename"], m["build_id"] = strings[m["filename"]], strings[m["build_id"]]
        assert not m["limit"] or m["start"] < m["limit"]

    def frames(location_id):
        at = locations[location_id]
        m = mappings[at["mapping_id"]] if at["mapping_id"] else None
        if m and m["limit"]:
            assert m["start"] <= at["address"] < m["limit"], "an address outside its mapping"
        known = {"module": m and m["filename"], "build_id": m and m["build_id"], "address": at["address"]}
        lines = [message(data, {1: "function", 2: "line", 3: "column"}) for data in at["line"]]
        if not lines:
            return [dict(known, function=None, system_name="", start_line=0, file=None, line=0)]
        return [dict(known, function=strings[functions[i["function"]]["name"]],
                     system_name=strings[functions[i["function"]]["system_name"]],
                     start_line=functions[i["function"]]["start_line"],
                     file=strings[functions[i["function"]]["filename"]], line=i["line"]) for i in lines]

    types = [value_type(data) for data in top["sample_type"]]
    samples = []
    for data in top["sample"]:
        s = message(data, {}, [(3, "label")], [(1, "locations"), (2, "values")])
        assert len(s["values"]) == len(types), "as many values as types"
        samples.append({"values": dict(zip([t.split("/")[0] for t in types], s["values"])),
                        "labels": dict(label(data) for data in s["label"]),
                        "frames": [f for i in s["locations"] for f in frames(i)]})
    used = {i for data in top["sample"] for i in message(data, {}, [(3, "label")], [(1, "l"), (2, "v")])["l"]}
    assert used == set(locations), "a location that no sample has"
    return {"types": types, "samples": samples, "mappings": list(mappings.values()),
            "comments": [strings[i] for i in top["comment"]], "time_nanos": top["time_nanos"],
            "duration_nanos": top["duration_nanos"], "period": top["period"],
            "period_type": [value_type(data) for data in top["period_type"]],
            "default_sample_type": strings[top["default_sample_type"]]}


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout, indent=1)
