#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: written_kib.py PID

Print the proportional memory (PSS) of a process in KiB, without private pages that are all zeros: where the kernel has no
page of zeros for all, as in some virtual machines, a page that was only read is memory, too.
"""

import mmap
import struct
import sys

PAGE = mmap.PAGESIZE
PRESENT, FILE = 1 << 63, 1 << 61


def zero_pages(pid):
    found = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb") as pagemap, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            where, rights = line.split()[:2]
            start, end = (int(at, 16) for at in where.split("-"))
            if rights != "rw-p":
                continue
            pagemap.seek(start // PAGE * 8)
            entries = pagemap.read((end - start) // PAGE * 8)
            for i, (entry,) in enumerate(struct.iter_unpack("Q", entries)):
                if entry & PRESENT and not entry & FILE:
                    mem.seek(start + i * PAGE)
                    found += mem.read(PAGE) == bytes(PAGE)
    return found


with open(f"/proc/{sys.argv[1]}/smaps_rollup") as rollup:
    pss = next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
print(pss - zero_pages(sys.argv[1]) * PAGE // 1024)
