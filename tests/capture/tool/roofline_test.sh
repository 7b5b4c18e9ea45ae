#!/usr/bin/env bash
# tapedeck bench --roofline: every node beside its bound. Nothing here asks for a speed: numbers are finite and positive, and sums agree.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.graph ./*.tape ./*.json cache
export TAPEDECK_CALIBRATION=off
cat > f.graph <<'G'
graph f(%x: f32[64,64], %w: f32[64,64]) {
  %y: f32[64,64] = matmul(%x, %w)
  %z: f32[64,64] = relu(%y)
  %s: f32[] = sum(%z) {axes=[0,1]}
  return %s
}
G

# the table: measured peaks, one line for each node, the rest of them, the ops, the step
expect 0 bench f.graph --roofline --small --threads 1 --min-time 0.01; said "the peaks of 1 thread are measured now"
for word in "peaks (measured), 1 thread:" "memory" "%y" matmul relu "bound us" "of peak" "sum of bounds" "over the bounds: step"; do answered "$word"; done
expect 0 bench f.graph --roofline --small --threads 1 --min-time 0.01 --top 1; answered "and 2 more"; answered "and 2 more ops"
expect 0 bench f.graph --roofline --small --threads 1 --min-time 0.01 --top 0; ! grep -q "more" out || fail "--top 0 leaves something out"
expect 0 bench f.graph --threads 1 --min-time 0.01 --json; ! grep -q roofline out || fail "a roofline that nobody asked for"
expect 2 bench f.graph --top 3; said "--roofline"
expect 2 bench f.graph --roofline --top -1

# the JSON of several files and numbers of threads
expect 0 record mlp --batch 4 -o m.tape
expect 0 bench f.graph m.tape --roofline --small --threads 1,2 --budget 100% --min-time 0.01 --json
[ "$(grep -c '"roofline"' out)" = 4 ] || fail "$(grep -c '"roofline"' out) rooflines, not 4"
for key in peaks source gflop_per_s half_gflop_per_s levels gb_per_s step_us fastest_us kernels_us bound_us ratio fastest_ratio below_bound unbounded nodes node name op module site \
  us lost_us flops bytes percent_of_peak bound_by share ops; do
  answered "\"$key\":"
done
answered '"source": "measured"'; answered '"bound_by": "flops"'
if command -v python3 > /dev/null; then
  cat > look.py <<'P'
import json, math, sys
answer = json.load(open("out"))
def near(a, b): return abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))
for row in answer["results"]:
    r = row["roofline"]
    assert near(r["step_us"], 1000 * row["median_ms"])
    rates = [r["peaks"]["gflop_per_s"], r["peaks"]["half_gflop_per_s"]] + [l["gb_per_s"] for l in r["peaks"]["levels"]]
    assert all(math.isfinite(x) and x > 0 for x in rates), rates
    by_name = {l["name"]: l["gb_per_s"] for l in r["peaks"]["levels"]}
    nodes = r["nodes"]
    assert nodes and [n["lost_us"] for n in nodes] == sorted((n["lost_us"] for n in nodes), reverse=True)
    for n in nodes:
        assert n["us"] >= 0 and n["bound_us"] >= 0 and near(n["lost_us"], n["us"] - n["bound_us"]), n
        if n["us"] > 0:
            assert near(n["percent_of_peak"], 100 * n["bound_us"] / n["us"]), n
            assert near(n["gb_per_s"], n["bytes"] / n["us"] / 1e3) and near(n["gflop_per_s"], n["flops"] / n["us"] / 1e3), n
        if n["bound_by"] == "flops": assert near(n["bound_us"], n["flops"] / r["peaks"]["gflop_per_s"] / 1e3), n
        elif n["bound_by"] != "-": assert near(n["bound_us"], n["bytes"] / by_name[n["bound_by"]] / 1e3), n
    assert near(r["kernels_us"], sum(n["us"] for n in nodes))
    assert near(r["bound_us"], sum(min(n["us"], n["bound_us"]) for n in nodes))
    assert near(sum(n["share"] for n in nodes), 1) and near(sum(o["share"] for o in r["ops"]), 1)
    assert near(r["ratio"], r["step_us"] / r["bound_us"]) and near(r["fastest_ratio"], r["fastest_us"] / r["bound_us"])
    assert near(r["fastest_us"], 1000 * row["min_ms"]) and r["fastest_us"] <= r["step_us"]
    assert sum(o["nodes"] for o in r["ops"]) == len(nodes) and near(sum(o["us"] for o in r["ops"]), r["kernels_us"])
P
  python3 look.py || fail "the numbers do not agree"
else
  echo "no python3 here: the sums were not checked"
fi

# peaks of a calibration: by their numbers, kept and shown; a calibration of before has none; one that is damaged is said to be
expect 0 calibrate --quick -o cal.json; answered "peaks, 1 thread:"
export TAPEDECK_CALIBRATION=$PWD/cal.json
expect 0 calibrate --show; answered "peaks, 1 thread:"
expect 0 calibrate --show --json; answered '"peaks": ['; answered '"gb_per_s":'
expect 0 bench f.graph --roofline --threads 1 --min-time 0.01; quiet; answered "peaks (calibration), 1 thread:"
sed -E 's/"peaks"/"earlier"/' cal.json > old.json
TAPEDECK_CALIBRATION=$PWD/old.json expect 0 bench f.graph --roofline --small --threads 1 --min-time 0.01; said "measured now"
TAPEDECK_CALIBRATION=$PWD/old.json expect 0 calibrate --show; ! grep -q "peaks" out || fail "peaks out of nowhere"
sed -E 's/"gb_per_s":[0-9.e+]+/"gb_per_s":-1/' cal.json > bad.json
TAPEDECK_CALIBRATION=$PWD/bad.json expect 0 bench f.graph --roofline --small --threads 1 --min-time 0.01; said "gb_per_s is -1"; said "measured now"
finish
