# SPDX-License-Identifier: GPL-2.0-or-later
"""deny_ptrace.py PID COMMAND...: runs the command, to which the kernel forbids ptrace() of this process, as Yama would."""
import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
PTRACE = {"x86_64": 101, "aarch64": 117}[os.uname().machine]
NUMBER, SECOND_ARGUMENT = 0, 24  # bytes in struct seccomp_data, whose low halves come first

pid = int(sys.argv[1])
rows = [
    (LOAD_WORD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 0, 3, PTRACE),
    (LOAD_WORD, 0, 0, SECOND_ARGUMENT),
    (JUMP_IF_EQUAL, 0, 1, pid),
    (RETURN, 0, 0, FAIL | errno.EPERM),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
    sys.exit("deny_ptrace: %s" % os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
