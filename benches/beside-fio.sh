#!/usr/bin/env bash
# Compares `assay io` with fio: the same operations on the same files, alternating.
#
#     benches/beside-fio.sh FOLDER [ASSAY [FIO]]
#
# FOLDER is on the drive to be measured; files of SIZE (1G) are created there and removed at the end. JOBS ("read write
# log all") are measured one after the other: READERS (4) threads that read random blocks of 16 KiB; one writer that
# keeps DEPTH (16) random writes of 16 KiB in flight; one logger that appends 8 KiB and makes each append durable with
# fdatasync; and all three at once. Data files are opened with O_DIRECT; with DIRECT=0, through the page cache.
#
# A pair is one run of each program for SECONDS_EACH (5) seconds; every other pair starts with fio. For each kind of
# work, the ratio is the geometric mean over PAIRS (15) pairs of assay's operations per second to fio's, with a 95 %
# bootstrap interval: the pairs are drawn again, with replacement, 10,000 times.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
folder=$1 assay=${2:-assay} fio=${3:-fio}
pairs=${PAIRS:-15} seconds=${SECONDS_EACH:-5} size=${SIZE:-1G} readers=${READERS:-4} depth=${DEPTH:-16}
jobs=${JOBS:-read write log all} direct=${DIRECT:-1}
files=4
work=$(mktemp -d)
trap 'rm -rf "$work" "$folder"/assay-io-*' EXIT

has() { [ "$1" = "$2" ] || [ "$1" = all ]; }

# Prints operations per second of reads, writes and log appends; 0: none.
numbers() { awk '{ all[$1] = $2 } END { print all["read"] + 0, all["write"] + 0, all["log"] + 0 }'; }

of_assay() {
  local job=$1 r=0 w=0 l=0
  if has "$job" read; then r=$readers; fi
  if has "$job" write; then w=1; fi
  if has "$job" log; then l=1; fi
  set -- --size "$size" --files $files --readers "$r" --writers "$w" --write-depth "$depth" --loggers "$l" --time "${2}s"
  if [ "$direct" = 1 ]; then set -- "$@" --direct; fi
  "$assay" io --folder "$folder" "$@" --keep --no-record --quiet --format json |
    tr -d ' \n' | grep -o '"name":"[a-z]*","transactions":[0-9]*,[^}]*"tps":[0-9.e+]*' |
    sed 's/.*"name":"\([a-z]*\)".*"tps":/\1 /' | numbers
}

of_fio() {
  local data=$folder/assay-io-data.0 number
  for number in $(seq $((files - 1))); do data=$data:$folder/assay-io-data.$number; done
  {
    cat <<EOF
[global]
thread=1
time_based=1
runtime=$2
randrepeat=0
norandommap=1
invalidate=0
group_reporting=1
file_service_type=random
EOF
    if has "$1" read; then
      printf '%s\n' '[read]' "filename=$data" rw=randread bs=16k direct="$direct" ioengine=psync numjobs="$readers"
    fi
    if has "$1" write; then
      printf '%s\n' '[write]' new_group "filename=$data" rw=randwrite bs=16k direct="$direct" ioengine=io_uring iodepth="$depth"
    fi
    if has "$1" log; then
      printf '%s\n' '[log]' new_group "filename=$folder/assay-io-log.0" size=64m rw=write bs=8k ioengine=psync fdatasync=1
    fi
  } >"$work/jobs"
  "$fio" --output-format=terse "$work/jobs" | awk -F';' '/^3;/ { print $3, $8 + $49 }' | numbers
}

of_assay all 1 >/dev/null
printf '%-6s %-6s %10s %10s  %s\n' jobs kind assay/s fio/s 'ratio, 95 % interval'
for job in $jobs; do
  for pair in $(seq "$pairs"); do
    if [ $((pair % 2)) = 1 ]; then
      ours=$(of_assay "$job" "$seconds") theirs=$(of_fio "$job" "$seconds")
    else
      theirs=$(of_fio "$job" "$seconds") ours=$(of_assay "$job" "$seconds")
    fi
    echo "$ours $theirs" | tee -a "$work/$job" >&2
  done
  awk -v job="$job" '
    function sorted(list, n,   i, j, one) {
      for (i = 2; i <= n; i++) {
        one = list[i]
        for (j = i - 1; j > 0 && list[j] > one; j--) list[j + 1] = list[j]
        list[j + 1] = one
      }
    }
    { for (kind = 1; kind <= 6; kind++) rate[kind, NR] = $kind }
    END {
      split("read write log", names, " ")
      srand(1)
      for (kind = 1; kind <= 3; kind++) {
        if (rate[kind, 1] == 0) continue
        ours = theirs = sum = 0
        for (i = 1; i <= NR; i++) {
          ours += log(rate[kind, i]); theirs += log(rate[kind + 3, i])
          difference[i] = log(rate[kind, i] / rate[kind + 3, i]); sum += difference[i]
        }
        n = 10000
        for (draw = 1; draw <= n; draw++) {
          drawn = 0
          for (i = 1; i <= NR; i++) drawn += difference[1 + int(rand() * NR)]
          # In classes of 1/10,000: there is no need to sort them.
          mean[draw] = int(exp(drawn / NR) * 10000); count[mean[draw]]++
        }
        low = high = ""; seen = 0; m = 0
        delete classes
        for (one in count) classes[++m] = one + 0
        sorted(classes, m)
        for (i = 1; i <= m; i++) {
          seen += count[classes[i]]
          if (low == "" && seen >= 0.025 * n) low = classes[i] / 10000
          if (high == "" && seen >= 0.975 * n) high = classes[i] / 10000
        }
        delete count
        printf "%-6s %-6s %10.0f %10.0f  %.3f [%.3f, %.3f]\n", job, names[kind], exp(ours / NR), exp(theirs / NR), exp(sum / NR), low, high
      }
    }' "$work/$job"
done
