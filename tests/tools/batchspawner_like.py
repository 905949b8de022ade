"""What Jupyter's batchspawner does with LSF, written from how it behaves: a server is a batch job,
its host is read from bjobs, a hub talks to it, bkill ends it. Then the same round trip by hand: a
server in a `bsub -Is` shell under a terminal of its own. No Jupyter is here: Python's own HTTP
server stands for the notebook."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import urllib.request

PATIENCE = 60
# prints the port that the system gave it
SERVER = (
    "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
    "print('port', s.server_port, flush=True); s.serve_forever()"
)
SCRIPT = """#!/bin/sh

#BSUB -J spawner-jupyterhub        # the name of the job
#BSUB -q normal
#BSUB -o {out}
#BSUB -e {out}.err

echo hello > page.txt
exec python3 -c "{server}"
"""


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **more)


def until(what, found):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come in {PATIENCE} s")


def state(job):
    """The state and the host, as the spawner asks for them."""
    said = run("bjobs", "-a", "-noheader", "-o", "STAT EXEC_HOST", job)
    assert said.returncode == 0, said
    return said.stdout.split()


def page(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/page.txt", timeout=10) as answer:
        return answer.read()


def spawned():
    out = os.path.abspath("spawner.out")
    said = run("bsub", input=SCRIPT.format(out=out, server=SERVER))
    assert said.returncode == 0 and said.stdout.startswith("Job <"), said
    job = said.stdout.split("<")[1].split(">")[0]
    assert job.isdigit(), said
    until("RUN", lambda: state(job)[0] == "RUN")
    host = state(job)[1].split(":")[0]
    assert re.fullmatch(r"[\w.-]+", host), host
    # what the server has printed, though its -o file comes at the end
    port = until("the port", lambda: re.search(r"port (\d+)", run("bpeek", job).stdout))[1]
    assert page(port) == b"hello\n"
    said = run("bkill", job)
    assert said.returncode == 0 and f"Job <{job}> is being terminated" in said.stdout, said
    until("EXIT", lambda: state(job)[0] == "EXIT")
    try:
        page(port)
    except OSError:
        return
    raise AssertionError("the server outlives its job")


class Terminal:
    """A program under a terminal."""

    def __init__(self, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "ready> "
            os.execvp(words[0], words)
        self.text = ""

    def read(self, want):
        """Waits for a text that matches; what stood before it is forgotten."""
        end = time.monotonic() + PATIENCE
        while not (found := re.search(want, self.text)):
            left = end - time.monotonic()
            assert left > 0, f"no {want} in {self.text!r}"
            if select.select([self.fd], [], [], left)[0]:
                try:
                    more = os.read(self.fd, 65536)
                except OSError:
                    more = b""
                assert more, f"it ended without {want}: {self.text!r}"
                self.text += more.decode(errors="replace")
        self.text = self.text[found.end() :]
        return found

    def type(self, text):
        os.write(self.fd, text.encode())

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def interactive():
    shell = Terminal("bsub", "-Is", "-J", "hub", "sh")
    job = shell.read(r"Job <(\d+)> is submitted to default queue <normal>")[1]
    shell.read(r"<<Starting on \S+>>")
    shell.read("ready> ")
    shell.size(33, 111)
    shell.type("stty size\r")
    shell.read(r"\n33 111\r\n")
    # a prompt that comes after the next words would stand before their output
    shell.read("ready> ")
    shell.type("echo $((6 * 7)) > page.txt; tty > /dev/null && echo a terminal\r")
    shell.read(r"\na terminal\r\n")
    shell.read("ready> ")
    shell.type(f'python3 -c "{SERVER}"\r')
    port = shell.read(r"\nport (\d+)\r\n")[1]
    assert page(port) == b"42\n"
    assert state(job)[0] == "RUN"
    # ^C ends the server and leaves the shell
    shell.type("\x03")
    shell.read("KeyboardInterrupt")
    shell.read("ready> ")
    shell.type("exit 5\r")
    assert shell.end() == 5
    until("EXIT", lambda: state(job)[0] == "EXIT")
    said = run("bjobs", "-noheader", "-o", "exit_code", job)
    assert said.stdout.strip() == "5", said


if __name__ == "__main__":
    spawned()
    interactive()
    sys.exit(0)
