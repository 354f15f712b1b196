#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Signatures of malloc and free in static C libraries, for --guess.

Usage: signatures.py TABLE NAME=ARCHIVE...

TABLE is user/probe/signatures.c. Each ARCHIVE, an installed libc.a of x86_64, becomes the build NAME in it, such as
"glibc 2.36-9+deb12u13"; the other builds of TABLE stay. Bytes that the linker writes are masked.
"""
import struct
import sys

MOST = 160  # bytes of a function that are compared
LEAST = 24  # of them not masked, or the function is left out

# For each kind of library: the symbol of the function, and what heaptap calls it.
FUNCTIONS = {
    "glibc": {"malloc": "malloc", "free": "free", "calloc": "calloc", "realloc": "realloc", "memalign": "memalign",
              "posix_memalign": "posix_memalign", "valloc": "valloc", "pvalloc": "pvalloc",
              # calls free for itself when a thread ends
              "__malloc_arena_thread_freeres": "", "tcache_thread_shutdown": ""},
    # malloc, free and realloc of musl are jumps to these
    "musl": {"__libc_malloc_impl": "malloc", "__libc_free": "free", "calloc": "calloc", "__libc_realloc": "realloc",
             "aligned_alloc": "aligned_alloc"},
}
BEGIN, END = "\t/* build ", "\t/* end */\n"
EM_X86_64, SHT_SYMTAB, SHT_RELA, SHN_ABS = 62, 2, 4, 0xFFF1
# The linker may write other instructions for these, which begin three bytes before the field.
RELAXED = {9: 3, 22: 3, 41: 3, 42: 3}  # GOTPCREL, GOTTPOFF, GOTPCRELX, REX_GOTPCRELX
WIDTH = {1: 8, 24: 8, 18: 8}  # R_X86_64_64, PC64, TPOFF64; others have 4 bytes


def members(data):
    """The files of an archive."""
    if data[:8] != b"!<arch>\n":
        sys.exit("signatures: not an archive")
    at = 8
    while at + 60 <= len(data):
        size = int(data[at + 48:at + 58])
        yield data[at + 60:at + 60 + size]
        at += 60 + size + size % 2


def text(data, at):
    return data[at:data.index(b"\0", at)].decode()


def functions(obj, wanted):
    """(symbol, code, masked positions) of the functions of an object file."""
    if obj[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", obj, 18)[0] != EM_X86_64:
        return
    (shoff,) = struct.unpack_from("<Q", obj, 40)
    (shnum,) = struct.unpack_from("<H", obj, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", obj, shoff + 64 * i) for i in range(shnum)]
    masks = {}
    for s in sections:
        if s[1] != SHT_RELA:
            continue
        for at in range(s[4], s[4] + s[5], 24):
            offset, info, _ = struct.unpack_from("<QQq", obj, at)
            kind = info & 0xFFFFFFFF
            masks.setdefault(s[7], set()).update(
                range(offset - RELAXED.get(kind, 0), offset + WIDTH.get(kind, 4)))
    for s in sections:
        if s[1] != SHT_SYMTAB:
            continue
        strings = sections[s[6]][4]
        for at in range(s[4], s[4] + s[5], 24):
            name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", obj, at)
            symbol = text(obj, strings + name)
            # Weak functions are stand-ins, except aliases of wanted names.
            if symbol not in wanted or info & 15 != 2 or not 0 < index < shnum:
                continue
            if info >> 4 == 2 and symbol.startswith("__"):
                continue
            code = obj[sections[index][4] + value:][:size]
            yield symbol, code, {m - value for m in masks.get(index, ())}


def row(fn, code, masked):
    nr = min(len(code), MOST)
    if nr - len([m for m in masked if 0 <= m < nr]) < LEAST or 0 in masked:
        return ""
    digits = "".join("??" if i in masked else "%02x" % code[i] for i in range(nr))
    lines = [digits[i:i + 92] for i in range(0, len(digits), 92)]
    return "\t{ \"%s\", %d,\n%s },\n" % (fn, len(code), "\n".join("\t  \"%s\"" % line for line in lines))


def build(name, path):
    wanted = FUNCTIONS[name.split()[0]]
    with open(path, "rb") as f:
        data = f.read()
    found = {}
    for obj in members(data):
        for symbol, code, masked in functions(obj, wanted):
            found.setdefault(symbol, row(wanted[symbol], code, masked))
    rows = [found[s] for s in wanted if found.get(s)]
    if not any("\"malloc\"" in r for r in rows) or not any("\"free\"" in r for r in rows):
        sys.exit("signatures: %s: no malloc and free" % path)
    return rows


def main():
    table = sys.argv[1]
    with open(table, encoding="ascii") as f:
        old = f.read()
    first = old.index(BEGIN) if BEGIN in old else old.index(END)
    last = old.index(END)
    builds = {}
    for part in old[first:last].split(BEGIN)[1:]:
        name, rows = part.split(" */\n", 1)
        builds[name] = rows
    for arg in sys.argv[2:]:
        name, path = arg.split("=", 1)
        rows = "\t{ .build = \"%s\" },\n" % name + "".join(build(name, path))
        same = [n for n, r in builds.items() if n != name and r.split("\n", 1)[1] == rows.split("\n", 1)[1]]
        if same:
            print("%s: the same code as %s" % (name, same[0]))
            continue
        builds[name] = rows
    with open(table, "w", encoding="ascii") as f:
        f.write(old[:first] + "".join(BEGIN + n + " */\n" + r for n, r in builds.items()) + old[last:])


main()
