#!/usr/bin/env bash
# sweep: the curve of each strategy as a table, CSV, a picture and JSON; each point is that of `plan`; Ctrl-C keeps what is found.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph ./*.csv ./*.svg
expect 0 record cnn --batch 4 --abstract -o m.tape

expect 0 sweep m.tape --points 5 --csv s.csv --svg s.svg; quiet
answered 'keep-all peak'; answered 'greedy'; ! grep -q 'No strategy lowers' out || fail "the floor is said to be the peak"
expect 0 record mlp --batch 4 --abstract -o low.tape; expect 0 sweep low.tape --points 3; answered 'No strategy lowers the peak'
expect 0 sweep m.tape --points 5 --strategies auto,none --json; quiet; cp out s.json
[ "$(head -c 4 s.svg)" = '<svg' ] || fail "the picture begins with $(head -c 40 s.svg)"
[ "$(head -1 s.csv | cut -d, -f1-3)" = strategy,budget_bytes,feasible ] || fail "the list begins with $(head -1 s.csv)"

# The list agrees with the JSON, and both with `plan` at one budget in the middle.
budget=$(awk -F, '$1 == "auto" { print $2 }' s.csv | sed -n 3p)
expect 0 plan m.tape --budget "$budget" --json; cp out p.json
python3 - "$budget" << 'END' || fail "the points are not those of plan"
import csv, json, sys
budget = int(sys.argv[1])
rows = list(csv.DictReader(open("s.csv")))
sweep, plan = json.load(open("s.json")), json.load(open("p.json"))
assert sweep["schema"] == "tapedeck.sweep/1" and sweep["complete"] is True
assert [c["strategy"] for c in sweep["curves"]] == ["auto", "none"]
assert {r["strategy"] for r in rows} >= {"auto", "none", "greedy", "regions"}
for curve in sweep["curves"]:
    listed = [r for r in rows if r["strategy"] == curve["strategy"]]
    assert len(listed) == len(curve["points"]) == 5
    for r, p in zip(listed, curve["points"]):
        assert int(r["budget_bytes"]) == p["budget_bytes"] and float(r["cost_us"]) == p["cost_us"]
        assert bool(int(r["feasible"])) == p["feasible"] and (not p["feasible"] or p["peak_bytes"] <= p["budget_bytes"])
        if p["cost_lower_bound_us"] is not None and p["feasible"]:
            assert float(r["cost_lower_bound_us"]) == p["cost_lower_bound_us"] <= p["cost_us"]
point = [p for p in sweep["curves"][0]["points"] if p["budget_bytes"] == budget][0]
for key in ("peak_bytes", "cost_us", "cost_lower_bound_us", "bound_from", "recomputed_nodes"):
    assert point[key] == plan[key], key
assert sweep["floor_bytes"] == plan["floor_bytes"] and sweep["keep_all_peak_bytes"] == plan["keep_all_peak_bytes"]
END

# `all` is the default; a name twice is one curve; the list may go to stdout, and then the table does not.
expect 0 sweep m.tape --points 5 --strategies all,none --csv -; cmp -s out s.csv || fail "--csv - is another list"; said 'keep-all peak'
expect 0 sweep m.tape --points 2 --strategies none,none --csv -; [ "$(wc -l < out)" = 3 ] || fail "none twice: $(cat out)"

expect 2 sweep m.tape --strategies best; said "unknown strategy 'best'"
expect 2 sweep m.tape --points 1
expect 2 sweep m.tape --csv s.csv --svg ./s.csv
expect 2 sweep m.tape --csv m.tape
expect 2 sweep m.tape --svg -
expect 3 sweep missing.tape

# Ctrl-C in the middle of many points: the files have the points that were found, in the order of the whole list.
expect 0 record resnet18 --batch 4 --abstract -o big.tape
"$tool" sweep big.tape --points 1000 --csv part.csv --svg part.svg --json > out 2> err & pid=$!
interrupt $pid
[ $code = 130 ] || fail "interrupted, sweep exited $code: $(head -c 300 err)"
said interrupted
if [ -e part.csv ]; then
  answered '"complete": false'; said 'in the files'
  grep -q 'points are missing' part.svg || fail "the picture does not say that points are missing"
  [ "$(wc -l < part.csv)" -gt 1 ] || fail "the list has no points"
else
  absent part.svg  # interrupted before the first point
fi
finish
