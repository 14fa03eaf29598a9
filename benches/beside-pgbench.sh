#!/usr/bin/env bash
# Compares the CPU time of `assay pgbench` and pgbench for the same transactions, alternating.
#
#     benches/beside-pgbench.sh HOST PORT DATABASE [ASSAY [PGBENCH]]
#
# The database holds the tables of `pgbench -i`. For each script (SCRIPTS) and number of clients (CLIENTS), a run of one
# transaction per client is subtracted from a run of many: the rest is user and system time of the client process
# per transaction. Many is TOTAL, but at least 100 per client (20 of tpcb-like), so that start and login are a small
# part of it. Prints the median of REPEATS (5) runs of each, and the median of the ratios of neighboring runs.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
host=$1 port=$2 database=$3 assay=${4:-assay} pgbench=${5:-pgbench}
repeats=${REPEATS:-5}
TIMEFORMAT='%U %S'

# run TOOL CLIENTS COUNT [OPTION…]: prints CPU seconds and transactions per second.
run() {
  local tool=$1 clients=$2 count=$3 report cpu
  shift 3
  report=$(mktemp)
  local words=(-h "$host" -p "$port" -n -M prepared -c "$clients" -t "$count" "$@" "$database")
  cpu=$({ time $tool "${words[@]}" >"$report" 2>&1; } 2>&1)
  grep -q '^tps = ' "$report" || { cat "$report" >&2; echo "failed: $tool ${words[*]}" >&2; }
  awk -v cpu="$cpu" '/^tps = / { split(cpu, part, " "); print part[1] + part[2], $3 }' "$report"
  rm "$report"
}

median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

printf '%-12s %7s %12s %12s %10s %10s\n' script clients 'assay µs' 'pgbench µs' 'CPU ratio' 'tps ratio'
for script in ${SCRIPTS:-select-only tpcb-like}; do
  for clients in ${CLIENTS:-1 16 64 256 1024}; do
    total=${TOTAL:-40000}
    [ $script = select-only ] || total=$((total / 6))
    least=$([ $script = select-only ] && echo 100 || echo 20)
    count=$((total / clients > least ? total / clients : least))
    further=$(((count - 1) * clients))
    for _ in $(seq "$repeats"); do
      read -r ours_before _ < <(run "$assay pgbench" "$clients" 1 -b $script)
      read -r theirs_before _ < <(run "$pgbench" "$clients" 1 -b $script)
      read -r ours ours_tps < <(run "$assay pgbench" "$clients" $count -b $script)
      read -r theirs theirs_tps < <(run "$pgbench" "$clients" $count -b $script)
      awk -v a="$ours" -v b="$ours_before" -v c="$theirs" -v d="$theirs_before" -v n=$further -v s="$ours_tps" \
        -v t="$theirs_tps" 'BEGIN { x = (a - b) * 1e6 / n; y = (c - d) * 1e6 / n; print x, y, x / y, s / t }'
    done >/tmp/beside-pgbench.$$
    column() { cut -d' ' -f"$1" /tmp/beside-pgbench.$$ | median; }
    printf '%-12s %7d %12.1f %12.1f %10.2f %10.2f\n' $script "$clients" \
      "$(column 1)" "$(column 2)" "$(column 3)" "$(column 4)"
    rm /tmp/beside-pgbench.$$
  done
done
