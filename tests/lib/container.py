# SPDX-License-Identifier: GPL-2.0-or-later
# container.py ROOT PROGRAM [ARG...]: runs the program in a mount namespace whose root is ROOT, and says its PID. Each line
# FROM TO on standard input mounts the directory FROM of the container over TO. INNER_LIBRARY_PATH is for the program.
import ctypes, os, signal, sys

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x1000, 0x4000, 1 << 18, 2
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(libc, name)(*args):
        sys.exit(f"{name}: {os.strerror(ctypes.get_errno())}")


def bind(source, target):
    call("mount", os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(MS_BIND), None)


root = sys.argv[1]
call("unshare", CLONE_NEWNS)
call("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
bind(root, root)
os.chdir(root)
# As pivot_root(2) has it: the old root lies over the new one, and is taken off.
call("pivot_root", b".", b".")
call("umount2", b".", MNT_DETACH)
os.chdir("/")
pid = os.fork()
if not pid:
    os.environ["LD_LIBRARY_PATH"] = os.environ.get("INNER_LIBRARY_PATH", "")
    os.execv(sys.argv[2], sys.argv[2:])
print("pid", pid, flush=True)
for line in sys.stdin:
    bind(*line.split())
    print("mounted", flush=True)
os.kill(pid, signal.SIGTERM)
os.wait()
