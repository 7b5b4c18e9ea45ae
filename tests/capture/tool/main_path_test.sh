#!/usr/bin/env bash
# record -> info, print, plan, verify -> replay --check-eager, as an operator would.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape

expect 0 record cnn --batch 16 -o c.tape --json; quiet; answered '"schema": "tapedeck.record/1"'
# For people a summary, one line for each kind; every name with -v, and in the JSON.
expect 0 record cnn --batch 16 -o c.tape; quiet; answered 'inputs: x f32[16,'; answered 'parameters, '; answered 'all updated by the step'; answered 'outputs: loss f32[]'
grep -q 'conv1.weight' out && fail "the summary names parameters"; [ "$(wc -l < out)" -le 6 ] || fail "the summary has $(wc -l < out) lines"
expect 0 record cnn --batch 16 -o c.tape -v; quiet; answered '  conv1.weight: f32['
expect 0 record cnn --batch 16 -o c.tape --verbose --json; quiet; answered '"name": "conv1.weight"'; answered '"updated": ['
expect 0 info c.tape; answered 'conv1.weight'
expect 0 info c.tape --json; answered '"schema": "tapedeck.info/1"'
expect 0 plan c.tape --strategy none --json
keep_all=$(number peak_bytes)
floor=$(number floor_bytes)
[ $((floor * 2)) -le "$keep_all" ] || fail "the cnn's floor $floor is above half of $keep_all"

expect 0 plan c.tape --budget 60% -o p.tape --json; quiet
for key in schema feasible peak_bytes lower_bound_bytes floor_bytes budget_bytes nodes recomputed_nodes recompute_cost_ratio cost_lower_bound_us bound_from solve_ms; do answered "\"$key\":"; done
[ "$(number peak_bytes)" -le "$(number budget_bytes)" ] || fail "peak over budget"
[ "$(number budget_bytes)" = $((keep_all * 60 / 100)) ] || fail "60% of $keep_all is not $(number budget_bytes)"
planned=$(number peak_bytes)
expect 0 replay p.tape --threads 2 --steps 3 --check-eager --json; quiet
for key in schema device threads steps planned_peak_bytes observed_peak_bytes step_ms median min max equal_to_eager; do answered "\"$key\":"; done
answered '"equal_to_eager": true'
[ "$(number observed_peak_bytes)" = "$planned" ] || fail "observed $(number observed_peak_bytes), planned $planned"
expect 0 replay p.tape --threads 1 --steps 1 --json; answered '"equal_to_eager": null'
# What the process takes is what was promised. A sanitizer takes memory of its own.
if ! sanitized; then
  [ "$(number resident_peak_bytes)" -le $((planned + 48000000)) ] || fail "resident $(number resident_peak_bytes), planned $planned"
fi
expect 0 replay p.tape; answered "resident peak"
expect 0 verify p.tape; answered ok
expect 0 verify p.tape --json; answered '"ok": true'

# Without an option that asks for another plan, `plan` shows the plan of the file.
expect 0 plan p.tape; quiet; answered 'the plan in the file'
expect 0 plan p.tape --json; quiet; [ "$(number peak_bytes)" = "$planned" ] || fail "plan shows $(number peak_bytes), the file holds $planned"
expect 0 plan p.tape --explain choices; answered 'made again'
expect 0 plan p.tape -o q.tape; expect 0 replay q.tape --json; [ "$(number planned_peak_bytes)" = "$planned" ] || fail "the plan was not kept"
expect 0 plan p.tape --again --json; said 'the plan in the file has one of'; [ "$(number peak_bytes)" = "$keep_all" ] || fail "--again gives $(number peak_bytes)"
expect 0 plan p.tape --threads 2 --json; said 'planning without a budget'
expect 0 plan p.tape --budget 70% --json; quiet; [ "$(number peak_bytes)" -gt "$planned" ] || fail "a new budget gives $(number peak_bytes)"

# A value that is computed again is called by the name of its original. --until shows its value, and knows outputs by name.
expect 0 plan c.tape --budget 60% --explain peak; answered ' again: f32['
expect 0 replay p.tape --monitor 'relu'; answered ' again f32['
expect 0 replay p.tape --until relu; answered 'step 1: relu relu f32['; answered 'mean'
expect 0 replay p.tape --until loss; answered 'loss'
expect 2 replay p.tape --until los; said "did you mean 'loss'"
expect 0 record lenet -o quiet.tape -q; answered 'inputs'; ! grep -q 'lists every value' out || fail "-q has a note"
rm quiet.tape

# Text round trip: what print prints, plan, replay and verify take.
expect 0 print c.tape; cp out c.graph
expect 0 print c.graph; cmp -s out c.graph || fail "print(parse(text)) differs"
expect 0 print p.tape --planned; answered 'seg=0'; answered 'of=%'
expect 0 verify c.graph
expect 0 plan c.graph --json; [ "$(number peak_bytes)" = "$keep_all" ] || fail "the text plans to $(number peak_bytes)"
expect 0 replay c.graph --steps 1 --check-eager

# Saved state goes on where the replay stopped: two steps at once are one and one.
expect 0 replay p.tape --steps 2 --save two.tape
expect 0 replay p.tape --steps 1 --save one.tape
expect 0 replay one.tape --steps 1 --save oneone.tape
cmp -s two.tape oneone.tape || fail "2 steps and 1 + 1 steps differ"
expect 0 replay p.tape --weights one.tape --steps 1 --save again.tape; quiet
cmp -s two.tape again.tape || fail "one step from the weights after one step is not two steps"

# Monotone and hard: a smaller budget never costs less, and never peaks above itself.
last=0 budgets="100 90 80 70 60 50 40"
sanitized && budgets="100 70 40"
for percent in $budgets; do
  expect 0 plan c.tape --budget $percent% --json
  [ "$(number peak_bytes)" -le "$(number budget_bytes)" ] || fail "$percent%: peak over budget"
  clones=$(number recomputed_nodes)
  ratio=$(sed -nE 's/.*"recompute_cost_ratio": ([0-9.]+).*/\1/p' out)
  awk -v a="$ratio" -v b="$last" 'BEGIN { exit !(a >= b) }' || fail "$percent%: cost $ratio below $last"
  last=$ratio
done

# Models too large to compute can still be planned.
expect 0 record cnn --batch 100000 --abstract -o big.tape
expect 0 plan big.tape --budget 50% --json; answered '"feasible": true'
expect 0 record mlp --optimizer adamw --batch 8 -o m.tape
expect 0 replay m.tape --steps 3 --check-eager --json; answered '"equal_to_eager": true'
expect 0 models; answered cnn; expect 0 ops; answered conv2d; expect 0 devices --json; answered '"cpu"'
# The order of nodes: no higher than as recorded, and the recorded one on request.
expect 0 plan c.tape --order recorded --json; answered '"order": "recorded"'
recorded=$(number peak_bytes)
expect 0 plan c.tape --json
[ "$(number peak_bytes)" -le "$recorded" ] || fail "the chosen order needs $(number peak_bytes), the recorded one $recorded"
expect 2 plan c.tape --order best
finish
