# pip: parsl
"""parsl's LSFProvider: blocks of workers by nodes and by cores, from a file and from stdin."""

import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LSFProvider


@parsl.python_app
def where(x):
    import os

    return x + 1, os.environ["LSB_JOBID"], os.environ["LSB_QUEUE"]


def compute(label, **more):
    provider = LSFProvider(queue="normal", walltime="00:10:00", **more)
    executor = HighThroughputExecutor(
        label=label, address="127.0.0.1", max_workers_per_node=1, provider=provider
    )
    with parsl.load(Config(executors=[executor], run_dir=label, usage_tracking=0)):
        out = [f.result(timeout=100) for f in [where(i) for i in range(10)]]
        assert [n for n, _, _ in out] == list(range(1, 11)), out
        assert {q for _, _, q in out} == {"normal"}, out
        (block,) = provider.resources
        assert {j for _, j, _ in out} == {block}, (out, block)
        provider._status()
        assert provider.resources[block]["status"].state.name == "RUNNING", provider.resources
        assert provider.cancel([block]) == [True]


if __name__ == "__main__":
    compute("nodes", project="a-project")
    compute("cores", cores_per_block=2, cores_per_node=2, request_by_nodes=False, bsub_redirection=True)
    sys.exit(0)
