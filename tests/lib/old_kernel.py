# SPDX-License-Identifier: GPL-2.0-or-later
"""old_kernel.py NAME[,NAME...] COMMAND...: runs the command on a kernel that looks older: without these system calls.

NAME is a row of the table below, or `all`. `old_kernel.py list` prints the rows.
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_WORD, JUMP_IF_EQUAL, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NUMBER, ARGUMENTS = 0, 16  # bytes in struct seccomp_data, whose low halves come first
IS_ARM = os.uname().machine == "aarch64"
PTRACE, FCNTL, PRCTL, MADVISE = (117, 25, 167, 233) if IS_ARM else (101, 72, 157, 28)
OPENS = [(56, 2)] if IS_ARM else [(257, 2), (2, 1)]  # openat(2), open(2), and the position of the flags

# Numbers on x86_64 and aarch64 of what is younger than Linux 3.10, or what a kernel for boards is often built without.
CALLS = {
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "sched_setattr": (314, 274),
    "renameat2": (316, 276),
    "seccomp": (317, 277),
    "getrandom": (318, 278),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "execveat": (322, 281),
    "userfaultfd": (323, 282),
    "membarrier": (324, 283),
    "copy_file_range": (326, 285),
    "preadv2": (327, 286),
    "pkey_alloc": (330, 289),
    "statx": (332, 291),
    "rseq": (334, 293),
    "pidfd_send_signal": (424, 424),
    "io_uring_setup": (425, 425),
    "pidfd_open": (434, 434),
    "clone3": (435, 435),
    "close_range": (436, 436),
    "openat2": (437, 437),
    "pidfd_getfd": (438, 438),
    "faccessat2": (439, 439),
    "process_madvise": (440, 440),
    "epoll_pwait2": (441, 441),
    "landlock_create_ruleset": (444, 444),
    "perf_event_open": (298, 241),
}
# Requests of older calls: number of the call, position of the request, its values, and what the old kernel answers.
REQUESTS = {
    "PTRACE_SIGMASK": (PTRACE, 0, (0x420A, 0x420B), errno.EIO),  # 3.11
    "PTRACE_GET_SYSCALL_INFO": (PTRACE, 0, (0x420E,), errno.EIO),  # 5.3
    "PTRACE_GET_RSEQ_CONFIGURATION": (PTRACE, 0, (0x420F,), errno.EIO),  # 5.13
    "F_ADD_SEALS": (FCNTL, 1, (1033, 1034), errno.EINVAL),  # 3.17
    "PR_CAP_AMBIENT": (PRCTL, 0, (47,), errno.EINVAL),  # 4.3
    "MADVICE": (MADVISE, 2, (8, 18, 19, 20, 21, 22, 23, 24, 25), errno.EINVAL),  # 4.5 and later
}


def rows_of(name):
    """Instructions that end with the answer, or fall through with the number of the call loaded."""
    if name == "O_TMPFILE":  # 3.11
        return [
            row
            for call, position in OPENS
            for row in (
                (JUMP_IF_EQUAL, 0, 4, call),
                (LOAD_WORD, 0, 0, ARGUMENTS + 8 * position),
                (JUMP_IF_SET, 0, 1, 0o20000000),
                (RETURN, 0, 0, FAIL | errno.EISDIR),
                (LOAD_WORD, 0, 0, NUMBER),
            )
        ]
    if name in CALLS:
        return [(JUMP_IF_EQUAL, 0, 1, CALLS[name][IS_ARM]), (RETURN, 0, 0, FAIL | errno.ENOSYS)]
    call, position, values, err = REQUESTS[name]
    rows = [(LOAD_WORD, 0, 0, ARGUMENTS + 8 * position)]
    for value in values:
        rows += [(JUMP_IF_EQUAL, 0, 1, value), (RETURN, 0, 0, FAIL | err)]
    rows.append((LOAD_WORD, 0, 0, NUMBER))
    return [(JUMP_IF_EQUAL, 0, len(rows), call)] + rows


def hide(names):
    """Hide the calls from this process and all that it starts."""
    rows = [(LOAD_WORD, 0, 0, NUMBER)] + [row for name in names for row in rows_of(name)] + [(RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    # Without privileges the kernel wants the promise. It would change what heaptap may do.
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) and (
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)
    ):
        sys.exit("old_kernel: %s" % os.strerror(ctypes.get_errno()))


every = ["O_TMPFILE", *CALLS, *REQUESTS]
if sys.argv[1] == "list":
    print("\n".join(every))
else:
    hide(every if sys.argv[1] == "all" else sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
