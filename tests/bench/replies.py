#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the console takes to answer when a process has many live blocks.

replies.py HEAPTAP KEEP BLOCKS COMMAND...: a line "SECONDS CPU-SECONDS COMMAND" for each command. ADDRESS in a command
becomes the address of a block of the process.
"""
import os
import re
import subprocess
import sys
import time

heaptap, keep, blocks, *commands = sys.argv[1:]
END = "help quit"  # prints one line that no other command prints


def start(command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def ask(console, command):
    console.stdin.write(f"{command}\n{END}\n")
    console.stdin.flush()
    lines = []
    for line in console.stdout:
        if line.startswith("  quit "):
            return "".join(lines)
        lines.append(line)
    sys.exit(f"replies: the console ended at: {command}")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


target = start([keep, blocks, "24", "wait"])
target.stdout.readline()
console = start([heaptap, "console", "--ring-size", "256M", str(target.pid)])
try:
    ask(console, "status")
    target.stdin.write("x")
    target.stdin.flush()
    ask(console, f"wait allocs>{int(blocks) - 1} 10m")
    address = re.search("0x[0-9a-f]+", ask(console, "blocks 0 1")).group()
    for command in commands:
        begin, cpu = time.monotonic(), cpu_seconds(console.pid)
        ask(console, command.replace("ADDRESS", address))
        print(f"{time.monotonic() - begin:.2f} {cpu_seconds(console.pid) - cpu:.2f} {command}", flush=True)
finally:
    console.stdin.close()
    console.wait()
    target.kill()
