#!/usr/bin/env bash
# tapedeck bench: files and models, several thread counts, JSON, mistakes, Ctrl-C.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

expect 0 record mlp --batch 8 -o m.tape
expect 0 plan m.tape --json; peak=$(number peak_bytes)
expect 0 bench m.tape --min-time 0.05; quiet; answered "m.tape"; answered "outside"
expect 0 bench m.tape lenet --small --threads 1,2 --min-time 0.05 --json; quiet
for key in schema device interrupted total_s results name nodes segments threads runs warmup_runs median_ms p90_ms p99_ms min_ms max_ms timeline_runs \
  in_kernels_ms outside_kernels_ms outside_kernels_percent threads_busy_percent clock_read_ns planned_peak_bytes observed_peak_bytes speedup; do
  answered "\"$key\":"
done
answered '"schema": "tapedeck.bench/1"'; answered '"name": "lenet"'; answered '"interrupted": false'
[ "$(grep -c '"name"' out)" = 4 ] || fail "not four rows: $(grep -c '"name"' out)"
[ "$(number planned_peak_bytes)" = "$(number observed_peak_bytes)" ] || fail "observed $(number observed_peak_bytes), planned $(number planned_peak_bytes)"
value() { sed -nE "s/^ *\"$1\": ([0-9.e+-]+),?\$/\1/p" out; }
paste <(value min_ms) <(value median_ms) <(value p90_ms) <(value p99_ms) <(value max_ms) |
  awk '{ if (!($1 > 0 && $1 <= $2 && $2 <= $3 && $3 <= $4 && $4 <= $5)) exit 1 }' || fail "percentiles are not in order"
paste <(value in_kernels_ms) <(value outside_kernels_ms) <(value outside_kernels_percent) |
  awk '{ s = 100 * $2 / ($1 + $2); if (s - $3 > 1e-6 || $3 - s > 1e-6) exit 1 }' || fail "the share outside is not that of the parts"

# a fixed number of warm-up steps; a budget; a text graph; the plan of the file
expect 0 bench m.tape --warmup 2 --min-time 0.01 --json; [ "$(number warmup_runs)" = 2 ] || fail "warmed up $(number warmup_runs) times"
expect 0 bench m.tape --warmup 200ms --min-time 0.01 --json; [ "$(number warmup_runs)" -gt 3 ] || fail "200 ms of warm-up are $(number warmup_runs) steps"
expect 0 record cnn --batch 4 -o c.tape; expect 0 plan c.tape --json; keep_all=$(number peak_bytes)
expect 0 bench c.tape --budget 60% --min-time 0.01 --json
[ "$(number observed_peak_bytes)" -le $((keep_all * 60 / 100)) ] || fail "$(number observed_peak_bytes) is above 60% of $keep_all"
expect 0 plan c.tape --budget 50% -o p.tape --json; planned=$(number peak_bytes)
expect 0 bench p.tape --min-time 0.01 --json; [ "$(number planned_peak_bytes)" = "$planned" ] || fail "not the file's plan"
printf 'graph f(%%x: f32[4]) {\n  %%y: f32[4] = exp(%%x)\n  return %%y\n}\n' > f.graph
expect 0 bench f.graph --min-time 0.01 --json; answered '"nodes": 1'

# mistakes
expect 2 bench; said "--zoo"
expect 3 bench missing.tape; said missing.tape
expect 2 bench m.tape --warmup fast; said "--warmup fast"
expect 2 bench m.tape --warmup 1.5; said "--warmup 1.5"
expect 2 bench m.tape --min-time 0
expect 4 bench c.tape --budget 1%

# Ctrl-C prints what there is. (A script's background jobs ignore SIGINT unless they have job control.)
set -m
"$tool" bench m.tape f.graph --threads 1 --min-time 1000 --warmup 1 --json > out 2> err &
job=$!
sleep 2
kill -INT $job
wait $job; got=$?
[ "$got" = 130 ] || fail "interrupted bench exited $got"
answered '"interrupted": true'; answered '"name": "m.tape"'; answered '"in_kernels_ms": null'; said interrupted
finish
