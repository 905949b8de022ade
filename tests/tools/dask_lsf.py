# pip: dask-jobqueue
"""dask-jobqueue's LSFCluster: workers are jobs, started both ways it knows, and they compute."""

import subprocess
import sys

from dask.distributed import Client
from dask_jobqueue import LSFCluster


def square(x):
    import os

    return x * x, os.environ["LSB_JOBID"]


def jobs(state):
    words = ["bjobs", "-noheader", "-o", "jobid", "-" + state]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def compute(use_stdin):
    with LSFCluster(
        queue="normal",
        project="a project",
        cores=1,
        memory="2GB",
        walltime="00:10",
        use_stdin=use_stdin,
        log_directory="logs",
        job_extra_directives=["-B", "-u nobody"] if use_stdin else [],
        job_directives_skip=["-B", "-u"] if use_stdin else [],
    ) as cluster, Client(cluster, timeout=60) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=90)
        out = client.gather(client.map(square, range(50), pure=False))
        assert [n for n, _ in out] == [n * n for n in range(50)], out
        ids = {job for _, job in out}
        assert ids <= set(jobs("r")) and len(jobs("r")) == 2, (ids, jobs("r"))
        assert cluster.job_script().count("#BSUB") >= 6, cluster.job_script()
        cluster.scale(jobs=1)
        ids = set(jobs("r"))
    # leaving the cluster kills what is left of its jobs
    subprocess.run(["bwait", "-t", "1", "-w", " && ".join(f"ended({i})" for i in ids)], check=True)
    assert jobs("r") == [], jobs("r")


if __name__ == "__main__":
    for use_stdin in (True, False):
        compute(use_stdin)
    sys.exit(0)
