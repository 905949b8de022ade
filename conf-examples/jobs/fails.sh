#!/bin/sh
# Fails on purpose: bjobs shows EXIT, bjobs -l and the report in log/fails the exit code 3.
#BSUB -J fails
#BSUB -o log/fails
echo "this job ends with exit code 3"
exit 3
