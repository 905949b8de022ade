# pip: snakemake-executor-plugin-lsf
# pip: snakemake
"""snakemake with its lsf executor: a workflow of six jobs that succeeds, one that fails."""

import os
import pathlib
import subprocess
import sys

GOOD = """
rule all:
    input: "sum.txt"

rule number:
    output: "n_{i}.txt"
    resources: mem_mb=200, runtime=5
    shell: "echo {wildcards.i} $LSB_JOBID > {output}"

rule sum:
    input: expand("n_{i}.txt", i=range(4))
    output: "sum.txt"
    threads: 2
    resources: mem_mb=300, runtime="1h", lsf_project="a/b", lsf_queue="short"
    shell: "awk '{{s += $1}} END {{print s, ENVIRON[\\"LSB_DJOB_NUMPROC\\"]}}' {input} > {output}"
"""
BAD = """
rule fails:
    output: "never.txt"
    resources: mem_mb=200, runtime=5
    shell: "echo these words are in the log; exit 7"
"""


def snakemake(text, target):
    pathlib.Path("Snakefile").write_text(text)
    words = "snakemake --executor lsf --jobs 8 --latency-wait 20 --seconds-between-status-checks 1"
    words += " --default-resources lsf_queue=normal lsf_project=p --nocolor " + target
    # what it imports is there already: it must not write below the home directory of anybody
    return subprocess.run(
        words.split(), capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": "cache"}
    )


def jobs(fields):
    words = ["bjobs", "-a", "-noheader", "-o", fields]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    done = snakemake(GOOD, "all")
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.returncode
    assert pathlib.Path("sum.txt").read_text() == "6 2\n", pathlib.Path("sum.txt").read_text()
    ids = {pathlib.Path(f"n_{i}.txt").read_text().split()[1] for i in range(4)}
    assert len(ids) == 4, ids
    for line in jobs("jobid stat queue proj slots delimiter=','"):
        if line.split(",")[0] in ids:
            assert line.split(",")[1:] == ["DONE", "normal", "p", "1"], line
    assert any(line.endswith(",DONE,short,a/b,2") for line in jobs("id stat queue proj slots delimiter=','"))
    failed = snakemake(BAD, "never.txt")
    print(failed.stdout, failed.stderr)
    assert failed.returncode == 1 and "LSF status is: 'EXIT'" in failed.stderr, failed.returncode
    logs = [p.read_text() for p in pathlib.Path(".snakemake/lsf_logs").rglob("*.log")]
    assert any("these words are in the log" in log for log in logs), logs
    sys.exit(0)
