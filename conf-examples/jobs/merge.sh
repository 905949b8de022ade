#!/bin/sh
# Merges the files of the elements of "pages" after all of them are done.
#BSUB -J merge
#BSUB -w done(pages)
#BSUB -o log/merge
#BSUB -W 5
set -eu

cat out/*.sum | sort -k 4 > merged
awk '{ n++; from += $2; to += $3 }
     END { printf "%d pages, %d bytes compressed to %d\n", n, from, to }' merged > total
cat total
