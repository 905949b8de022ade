# pip: psij-python
"""psij's lsf executor: a job that is done, one that fails, one that is cancelled, the list."""

import pathlib
import subprocess
import sys
from datetime import timedelta

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1

if __name__ == "__main__":
    lsf = JobExecutor.get_instance("lsf")
    lsf.config.queue_polling_interval = lsf.config.initial_queue_polling_delay = 1
    attributes = JobAttributes(
        duration=timedelta(minutes=5), queue_name="normal", account="a-project"
    )

    def job(*words, **more):
        spec = JobSpec(executable=words[0], arguments=list(words[1:]), attributes=attributes, **more)
        made = Job(spec)
        lsf.submit(made)
        return made

    out = pathlib.Path("out").resolve()
    limit = timedelta(seconds=100)
    good = job("/bin/sh", "-c", 'echo "$X" $LSB_QUEUE', stdout_path=out, environment={"X": "words"},
               resources=ResourceSpecV1(process_count=1, memory=500 * 2**20), launcher="single")
    bad = job("/bin/sh", "-c", "exit 3", launcher="single")
    long = job("/bin/sleep", "300", launcher="single")
    long.wait(limit, target_states=[JobState.ACTIVE])
    try:
        assert long.native_id in lsf.list(), lsf.list()
    except OSError:
        print("psij asks for the login name of a terminal, and there is none")
    state = good.wait(limit)
    assert state.state == JobState.COMPLETED and out.read_text() == "words normal\n", (state, out.read_text())
    state = bad.wait(limit)
    assert state.state == JobState.FAILED and state.exit_code == 3, state
    long.cancel()
    # psij itself fails on any job with an exit_reason (it reads a key that it does not ask for)
    words = ["bjobs", "-noheader", "-o", "stat exit_reason", long.native_id]
    subprocess.run(["bwait", "-t", "1", "-w", f"ended({long.native_id})"], check=True)
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.startswith("EXIT TERM_OWNER"), said
    sys.exit(0)
