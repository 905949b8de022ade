#!/bin/sh
# Each element compresses one page, whose path is line LSB_JOBINDEX of the file "list",
# checks that the page can be restored, and writes its checksums and sizes to a file.
#     bsub -J "pages[1-$(wc -l < list)]" < pages.sh
#BSUB -J pages[1-10]            # -J on the command line overrides this
#BSUB -o log/page.%I            # %I is the index of the element
#BSUB -W 5
set -eu

page=$(sed -n "${LSB_JOBINDEX}p" list)
name=$(basename "$page")
gzip -9 -n -c "$page" > "out/$name.gz"
gzip -d -c "out/$name.gz" | cmp - "$page"
printf '%s %s %s %s\n' "$(cksum < "$page" | tr ' ' '\t' | cut -f1)" \
    "$(wc -c < "$page" | tr -d ' ')" "$(wc -c < "out/$name.gz" | tr -d ' ')" "$name" \
    > "out/$name.sum"
echo "$name: compressed on $LSB_HOSTS as element $LSB_JOBINDEX of job $LSB_JOBID"
