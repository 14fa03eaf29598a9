#!/usr/bin/env bash
# Compares `assay io` with fio: the same operations on the same files, alternating.
#
#     benches/beside-fio.sh FOLDER [ASSAY [FIO]]
#
# FOLDER is on the drive to be measured; files of SIZE (1G) are created there and removed at the end. Each of PAIRS (15)
# pairs runs both for SECONDS (5), alternating which one starts: READERS (4) threads read random blocks of 16 KiB, one
# writer keeps DEPTH (16) random writes in flight, one logger appends 8 KiB and syncs them with fdatasync. Data files are
# opened with O_DIRECT. Prints the medians of both and of the ratios of the pairs, with the 95 % confidence interval of
# the ratio (order statistics) and its quartiles.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
folder=$1 assay=${2:-assay} fio=${3:-fio}
pairs=${PAIRS:-15} seconds=${SECONDS_EACH:-5} size=${SIZE:-1G} readers=${READERS:-4} depth=${DEPTH:-16}
files=4
work=$(mktemp -d)
trap 'rm -rf "$work" "$folder"/assay-io-*' EXIT

# Prints operations per second of reads, writes and log appends.
of_assay() {
  "$assay" io --folder "$folder" --size "$size" --files $files --direct --readers "$readers" --writers 1 \
    --write-depth "$depth" --loggers 1 --time "${1}s" --keep --no-record --quiet --format json |
    tr -d ' \n' | grep -o '"name":"[a-z]*","transactions":[0-9]*,[^}]*"tps":[0-9.e+]*' |
    sed 's/.*"name":"\([a-z]*\)".*"tps":/\1 /' | awk '{ all[$1] = $2 } END { print all["read"], all["write"], all["log"] }'
}

of_fio() {
  local data=$folder/assay-io-data.0 number
  for number in $(seq $((files - 1))); do data=$data:$folder/assay-io-data.$number; done
  cat >"$work/jobs" <<EOF
[global]
thread=1
time_based=1
runtime=$1
randrepeat=0
norandommap=1
invalidate=0
group_reporting=1
file_service_type=random
[read]
filename=$data
rw=randread
bs=16k
direct=1
ioengine=psync
numjobs=$readers
[write]
new_group
filename=$data
rw=randwrite
bs=16k
direct=1
ioengine=io_uring
iodepth=$depth
[log]
new_group
filename=$folder/assay-io-log.0
size=64m
rw=write
bs=8k
ioengine=psync
fdatasync=1
EOF
  "$fio" --output-format=terse "$work/jobs" | awk -F';' '/^3;/ { all[$3] = $8 + $49 } END { print all["read"], all["write"], all["log"] }'
}

of_assay 1 >/dev/null
for pair in $(seq "$pairs"); do
  if [ $((pair % 2)) = 1 ]; then
    ours=$(of_assay "$seconds") theirs=$(of_fio "$seconds")
  else
    theirs=$(of_fio "$seconds") ours=$(of_assay "$seconds")
  fi
  echo "$ours $theirs" | tee -a "$work/pairs" >&2
done

# With 95 % confidence the median of n values is between the k-th and the (n + 1 - k)-th; k = n/2 - 0.98 sqrt(n).
column() { awk "{ print $1 }" "$work/pairs" | sort -g; }
middle() { awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'; }
interval() {
  awk '{ all[NR] = $1 } END { k = int(NR / 2 - 0.98 * sqrt(NR)); if (k < 1) k = 1
    printf "[%.3f, %.3f]  quartiles %.3f to %.3f\n", all[k], all[NR + 1 - k], all[int((NR + 3) / 4)], all[int((3 * NR + 1) / 4)] }'
}
printf '%-6s %10s %10s  %s\n' kind assay/s fio/s 'ratio: median, 95 % interval'
for kind in 1:read 2:write 3:log; do
  at=${kind%:*}
  printf '%-6s %10.0f %10.0f  %.3f %s\n' "${kind#*:}" "$(column "\$$at" | middle)" "$(column "\$$((at + 3))" | middle)" \
    "$(column "\$$at / \$$((at + 3))" | middle)" "$(column "\$$at / \$$((at + 3))" | interval)"
done
