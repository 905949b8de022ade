#!/bin/sh
# Would run for ever: to be ended with bkill.
#BSUB -J endless
#BSUB -o log/endless
echo "waiting for bkill"
while :; do
    sleep 60
done
