/* Pi by the midpoint rule: each rank sums a share of the strips, and rank 0 prints the sum.
 *
 *     mpicc -O2 -o pi mpi.c
 *     bsub -n 6 -R 'span[ptile=2]' -o pi.out mpiexec ./pi
 *
 * mpiexec of MPICH and of Intel MPI find the hosts of the job by themselves (lsf-parallel(7)).
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const long strips = 1000000;
    int rank, size;
    double part = 0, pi = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long i = rank; i < strips; i += size) {
        double x = (i + 0.5) / strips;
        part += 4 / (1 + x * x) / strips;
    }
    MPI_Reduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pi is %.6f, by %d ranks\n", pi, size);
    MPI_Finalize();
    return 0;
}
