#!/usr/bin/env bash
# CPU of an agent beside the same run in a single process, in turn.
#
#     benches/fleet-overhead.sh DATABASE-URL NATS-URL [ASSAY [OPTION…]]
#
# The database holds the tables of `assay prepare oltp_point_select`; the OPTIONs are those of `assay run`. Each of PAIRS
# (15) pairs is a run alone and a run by a fleet of one agent, SECONDS_EACH (10) long, and each pair starts with the other.
# Compared is the CPU time of the generator's process per transaction, as its record has it: that of the agent includes
# its NATS client. Prints both medians, and the median of the ratios of neighboring runs with its 95% interval (order
# statistics).
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
database=$1 nats=$2 assay=${3:-assay}
shift $(($# < 3 ? $# : 3))
folder=$(mktemp -d)
$assay agent --nats "$nats" --name overhead 2>"$folder/agent" &
agent=$!
trap 'kill $agent 2>/dev/null; wait $agent 2>/dev/null; rm -r "$folder"' EXIT

# run alone|fleet RECORD [OPTION…]
run() {
  local way=$1 record=$2
  shift 2
  local options=(--db "$database" --time "${SECONDS_EACH:-10}s" --warmup 2s --seed 1 --workers 1 --telemetry off --quiet)
  [ "$way" = alone ] || options+=(--fleet "$nats" --agents 1)
  $assay run oltp_point_select "${options[@]}" "$@" --record "$folder/$record" >"$folder/report" || cat "$folder/report" >&2
}

for pair in $(seq "${PAIRS:-15}"); do
  ways=(alone fleet)
  [ $((pair % 2)) = 1 ] || ways=(fleet alone)
  for way in "${ways[@]}"; do
    run "$way" "$way-$pair.json" "$@"
  done
done
python3 - "$folder" "${PAIRS:-15}" <<'PYTHON'
import json, math, sys
folder, pairs = sys.argv[1], int(sys.argv[2])

def cpu_us(way, pair):
    with open(f"{folder}/{way}-{pair}.json") as file:
        stage = json.load(file)["stages"][0]
    done = sum(one["count"] for one in stage["total"]["transactions"])
    generator = stage["generator"]
    return (generator["cpu_user_ns"] + generator["cpu_system_ns"]) / 1e3 / done

def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2

alone = [cpu_us("alone", pair) for pair in range(1, pairs + 1)]
fleet = [cpu_us("fleet", pair) for pair in range(1, pairs + 1)]
ratios = sorted(ours / theirs for ours, theirs in zip(fleet, alone))
# The largest number of values to leave out at each end so that the interval still holds 95%.
out, below = 0, 0.0
while (below := below + math.comb(pairs, out) / 2**pairs) <= 0.025:
    out += 1
change = lambda ratio: f"{(ratio - 1) * 100:+.2f}%"
interval = f"{change(ratios[out - 1])} to {change(ratios[-out])}" if out else "needs 6 pairs"
print(f"alone {median(alone):.3f} µs/tx, agent {median(fleet):.3f} µs/tx, {change(median(ratios))} [{interval}], {pairs} pairs")
PYTHON
