#!/bin/sh
# This job never ends by itself: end it with bkill.
#BSUB -J endless
#BSUB -o log/endless
echo "waiting for bkill"
while :; do
    sleep 60
done
