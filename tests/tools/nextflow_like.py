"""What nextflow does with LSF, written from how it behaves: the directives it puts at the head of
a script, the command lines it runs, how it reads what they print, and lsf.conf. No nextflow is
here: it would need Java."""

import os
import pathlib
import re
import subprocess
import sys
import time

STATES = {
    "PEND": "pending", "RUN": "running", "PSUSP": "hold", "USUSP": "hold", "SSUSP": "hold",
    "DONE": "done", "EXIT": "error", "UNKWN": "error", "ZOMBI": "error",
}  # fmt: skip


def lsf_conf():
    """The settings that say how memory is asked for: NAME=value lines, quotes or not."""
    text = pathlib.Path(os.environ["LSF_ENVDIR"], "lsf.conf").read_text()
    found = {}
    for line in text.splitlines():
        if m := re.match(r"^\s*([A-Z_0-9]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s#]*))", line):
            found[m[1]] = next(v for v in m.groups()[1:] if v is not None)
    return found


def in_unit(mega, unit):
    return {"K": mega * 1024, "M": mega, "G": max(1, mega // 1024)}[unit[0]]


def submit(name, body, cpus=1, memory=0, minutes=0, disk=0, array=0, options=()):
    """Pipes a script with #BSUB lines into bsub, from the task's own directory."""
    work = pathlib.Path("work", name).resolve()
    work.mkdir(parents=True)
    conf = lsf_conf()
    unit = conf.get("LSF_UNIT_FOR_LIMITS", "KB").upper()
    log = "%I/.command.log" if array else ".command.log"
    lines = ["-o /dev/null" if array else f"-o {work}/{log}", "-q normal"]
    if cpus > 1:
        lines += [f"-n {cpus}", '-R "span[hosts=1]"']
    if minutes:
        lines += [f"-W {minutes // 60:02}:{minutes % 60:02}"]
    if memory:
        per_job = conf.get("LSB_JOB_MEMLIMIT", "").upper() == "Y"
        asked = memory if per_job else memory // cpus
        reserved = asked if conf.get("RESOURCE_RESERVE_PER_TASK", "").upper() == "Y" else memory
        lines += [f"-M {in_unit(asked, unit)}"]
        lines += [f'-R "select[mem>={in_unit(memory, unit)}] rusage[mem={in_unit(reserved, unit)}]"']
    if disk:
        lines += [f'-R "select[tmp>={in_unit(disk, unit)}] rusage[tmp={in_unit(disk, unit)}]"']
    lines += [f'-J "{name}[1-{array}]"' if array else f"-J {name}", *options]
    script = "#!/bin/bash\n" + "".join(f"#BSUB {line}\n" for line in lines) + body + "\n"
    bsub = subprocess.run(["bsub"], cwd=work, input=script, capture_output=True, text=True)
    ids = [m[1] for m in map(re.compile(r"Job <(\d+)> is submitted").search, bsub.stdout.splitlines()) if m]
    assert bsub.returncode == 0 and len(ids) == 1, (bsub, script)
    return ids[0], work


def states(queue="normal"):
    """Job and state by the place of the headers in `bjobs -w -q QUEUE`; `-d` like jobs count."""
    said = subprocess.run(["bjobs", "-w", "-q", queue], capture_output=True, text=True)
    assert said.returncode == 0, said
    found, at = {}, None
    for line in said.stdout.splitlines():
        if at is None:
            at = line.index("JOBID"), line.index("STAT"), line.index("JOB_NAME")
            continue
        job, state, name = (line[p:].split(" ")[0] for p in at)
        words = line.split()
        assert (job, state) == (words[0], words[2]) and len(words) >= 10, line
        element = re.search(r"\[(\d+)\]$", name)
        found[f"{job}[{element[1]}]" if element else job] = STATES[state]
    return found


def until(what, true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, (what, states())
        time.sleep(0.2)


def ended(job):
    subprocess.run(["bwait", "-t", "1", "-w", f"ended({job})"], check=True)


def main():
    assert pathlib.Path(lsf_conf()["LSF_CONFDIR"], "lsf.shared").exists()
    # a task that ends well, in its directory, with what it asked for
    job, work = submit("nf-good__1_", "pwd; echo $LSB_JOBNAME; sleep 1",
                       cpus=2, memory=512, minutes=65, disk=10)  # fmt: skip
    assert job in states(), states()
    ended(job)
    assert job not in states()
    log = (work / ".command.log").read_text()
    assert log.startswith(f"{work}\nnf-good__1_\n") and "Successfully completed." in log, log
    limits = ["bjobs", "-noheader", "-o", "slots runtimelimit memlimit combined_resreq delimiter='|'", job]
    said = subprocess.run(limits, capture_output=True, text=True).stdout
    assert said.startswith("2|65") and "span[hosts=1]" in said and "rusage[" in said, said
    # one that fails, and its exit code where nextflow shows it
    job, work = submit("nf-bad", "echo no >&2; exit 42")
    ended(job)
    log = (work / ".command.log").read_text()
    assert "Exited with exit code 42." in log and log.startswith("no\n"), log
    # an array: elements by name, their number in the environment
    job, work = submit("nf-array", f"cd {pathlib.Path('work').resolve()}; echo $LSB_JOBINDEX > e$LSB_JOBINDEX; sleep 100", array=3)
    elements = {f"{job}[{i}]" for i in range(1, 4)}
    assert elements <= set(states()), states()
    until("an element", lambda: "running" in [states().get(e) for e in elements])
    # held, and killed in one command
    held, _ = submit("nf-held", "sleep 100", options=["-H"])
    assert states()[held] == "hold", states()
    kill = subprocess.run(["bkill", held, f"{job}[1]", f"{job}[2]", f"{job}[3]"], capture_output=True, text=True)
    assert kill.returncode == 0 and kill.stdout.count("is being terminated") == 4, kill
    until("the queue to be empty", lambda: states() == {})
    again = subprocess.run(["bkill", held], capture_output=True, text=True)
    assert again.returncode == 255 and "Job has already finished" in again.stdout + again.stderr, again
    refused = subprocess.run(["bsub"], input="#BSUB -q nosuch\ntrue\n", capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (255, "") and "No such queue" in refused.stderr, refused


if __name__ == "__main__":
    main()
    sys.exit(0)
