"""Pi by the midpoint rule, with mpi4py: each rank sums a share of the strips.

    bsub -n 6 -R 'span[ptile=2]' -o pi.out mpiexec python3 mpi.py

The mpiexec must be that of the MPI library for which mpi4py finds its symbols (lsf-parallel(7)).
"""

from mpi4py import MPI

STRIPS = 1_000_000

world = MPI.COMM_WORLD
part = 0.0
for i in range(world.rank, STRIPS, world.size):
    x = (i + 0.5) / STRIPS
    part += 4 / (1 + x * x) / STRIPS
pi = world.reduce(part, op=MPI.SUM, root=0)
if world.rank == 0:
    print(f"pi is {pi:.6f}, by {world.size} ranks")
