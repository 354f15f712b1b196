# SPDX-License-Identifier: GPL-2.0-or-later
"""Run inside gdb by gdb.sh: prints the stack at some calls of malloc, as "MODULE+OFFSET ..." from its caller on."""

import os

import gdb

CALLS = [int(n) for n in os.environ["CALLS"].split()]


def is_fixed(path):
    """Linked for one address?"""
    with open(path, "rb") as elf:
        return elf.read(18)[16] == 2


def biases():
    """Address - ELF address, for each file that is mapped from its beginning."""
    found = {}
    with open("/proc/%d/maps" % gdb.selected_inferior().pid) as maps:
        for line in maps:
            part = line.split()
            if len(part) > 5 and int(part[2], 16) == 0:
                start = int(part[0].split("-")[0], 16)
                is_file = part[5].startswith("/")
                found.setdefault(part[5], 0 if is_file and is_fixed(part[5]) else start)
    return found


def ranges():
    with open("/proc/%d/maps" % gdb.selected_inferior().pid) as maps:
        for line in maps:
            part = line.split()
            if len(part) > 5 and "x" in part[1]:
                low, high = (int(x, 16) for x in part[0].split("-"))
                yield low, high, part[5]


def stack():
    bias, code, places = biases(), list(ranges()), []
    frame = gdb.newest_frame().older()
    # heaptap's request is the outermost call of an allocator.
    while frame is not None and (frame.name() or "").startswith("operator new"):
        frame = frame.older()
    while frame is not None:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            pc = frame.pc()
            path = next((p for low, high, p in code if low <= pc - 1 < high), None)
            if path is None:  # gdb goes on beyond the dynamic linker's first instruction
                break
            places.append("%s+%#x" % (os.path.basename(path), pc - bias.get(path, 0)))
        frame = frame.older()
    return places


gdb.execute("set pagination off")
gdb.execute("set backtrace past-main on")
gdb.execute("set breakpoint pending on")
gdb.execute("set debuginfod enabled off")
gdb.execute("set startup-with-shell off")
gdb.execute("starti", to_string=True)
point = gdb.Breakpoint("malloc")
seen = 0
for call in CALLS:
    point.ignore_count = call - seen - 1
    gdb.execute("continue", to_string=True)
    if not gdb.selected_inferior().pid:
        break
    seen = call
    top = gdb.newest_frame()
    # The dynamic linker's own, before there is a C library: not traced.
    if "ld-linux" in (gdb.solib_name(top.pc()) or ""):
        continue
    print("STACK " + " ".join(stack()))
gdb.execute("kill", to_string=True)
