#!/usr/bin/env python3
"""Names the functions that a start needs, for src/sys/order.txt: the linker puts them together, so
that a command or a starter has its text from a dozen windows of the file instead of sixty. A window
of 64 KB costs 4 microseconds when it is first touched and 2 at the end of the process.

usage: order.py LSF > src/sys/order.txt        (`make order` does it with the file of `make build`)

A personal cluster of its own runs one job and a few commands, one instruction at a time (Linux on
x86-64, some minutes), and the functions that they came through are printed in the order of the
first call, each without its hash. The linker passes over a name that is no more; a function that
is new costs a page fault until this is run again.
"""

import bisect
import ctypes
import os
import re
import subprocess
import sys
import tempfile

GETREGS, STEP, CONT, DETACH = 12, 9, 7, 17
TRACEME, OPTIONS, SEIZE, INTERRUPT = 0, 0x4200, 0x4206, 0x4207
ON_FORK, ON_EXEC = 2 | 8, 16
WALL = 0x40000000
RIP = 16
SIGTRAP, SIGSTOP = 5, 19
COMMANDS = [
    "lsf -V",
    "bsub -o /dev/null /bin/true",
    "bjobs",
    "bjobs -l 1",
    "bhosts",
    "bqueues",
    "bkill 1",
    "lsload",
]

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2


def ptrace(what, pid, data=None):
    return libc.ptrace(what, pid, None, data)


def base_of(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return int(maps.readline().split("-")[0], 16)


def follow(pid, seen):
    """Steps a stopped process until it ends or becomes another program."""
    base, regs = base_of(pid), (ctypes.c_ulong * 27)()
    ptrace(OPTIONS, pid, ON_EXEC)
    signal = 0
    while True:
        if ptrace(GETREGS, pid, ctypes.addressof(regs)) == 0:
            seen.setdefault(regs[RIP] - base)
        if ptrace(STEP, pid, signal) != 0:
            return
        status = os.waitpid(pid, WALL)[1]
        if not os.WIFSTOPPED(status):
            return
        if status >> 16:
            ptrace(DETACH, pid)
            return
        signal = os.WSTOPSIG(status)
        signal = 0 if signal in (SIGTRAP, SIGSTOP) else signal


def command(words, env, seen):
    pid = os.fork()
    if pid == 0:
        os.dup2(2, 1)
        ptrace(TRACEME, 0)
        os.execvpe(words[0], words, env)
    os.waitpid(pid, WALL)
    follow(pid, seen)


def starter(zygote, submit, seen):
    """Follows the next starter that the zygote makes."""
    if ptrace(SEIZE, zygote, ON_FORK) != 0:
        sys.exit(f"order.py: process {zygote} cannot be traced")
    submit()
    child, told = 0, False
    while not (child and told):
        pid, _ = os.waitpid(-1, WALL)
        if pid == zygote:
            told = True
            ptrace(CONT, zygote)
        else:
            child = pid
    ptrace(INTERRUPT, zygote)
    os.waitpid(zygote, WALL)
    ptrace(DETACH, zygote)
    follow(child, seen)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as names:
        return [int(word) for word in names.read().split()]


def mould_of(top):
    """The process that starters are copies of: a child of the cluster's launcher."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as env, open(f"/proc/{entry}/comm") as comm:
                if comm.read() == "launcher\n" and f"LSF_ENVDIR={top}/conf".encode() in env.read():
                    for child in children(entry):
                        with open(f"/proc/{child}/comm") as name:
                            if name.read() == "starter\n":
                                return child
        except OSError:
            pass
    sys.exit("order.py: the launcher has no zygote")


def names(lsf, seen):
    """The symbols of these addresses; the linker keeps one of functions that are the same."""
    lines = subprocess.run(["nm", "-nS", lsf], capture_output=True, text=True, check=True).stdout
    at = {}
    for line in lines.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW":
            start, size = int(words[0], 16), int(words[1], 16)
            at.setdefault(start, (size, []))[1].append(words[3])
    hit, starts = {}, sorted(at)
    for address in seen:
        start = starts[max(bisect.bisect_right(starts, address) - 1, 0)]
        if start <= address < start + at[start][0]:
            hit.setdefault(start)
    # both ways in which Rust writes a name have a hash, which another compiler makes anew
    def short(name):
        name = re.sub(r"\.llvm\.\d+$", "", name)
        return re.sub(r"17h[0-9a-f]{16}E$", "17h*E", re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name))

    return dict.fromkeys(short(name) for start in hit for name in at[start][1])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lsf, seen = os.path.abspath(sys.argv[1]), {}
    with tempfile.TemporaryDirectory(prefix="lsf-order-") as work:
        top = f"{work}/c"
        subprocess.run([lsf, "up", "--dir", top], check=True, stdout=subprocess.DEVNULL)
        try:
            env = dict(os.environ, LSF_ENVDIR=f"{top}/conf", PATH=f"{top}/bin:{os.environ['PATH']}")
            quiet = {"env": env, "stdout": subprocess.DEVNULL, "check": True}
            submit = ["bsub", "-o", "/dev/null", "/bin/true"]
            subprocess.run([*submit[:1], "-K", *submit[1:]], **quiet)
            starter(mould_of(top), lambda: subprocess.run(submit, **quiet), seen)
            for words in COMMANDS:
                command(words.split(), env, seen)
        finally:
            subprocess.run([lsf, "down", "--dir", top], stdout=subprocess.DEVNULL)
    print("\n".join(names(lsf, seen)))


main()
