#!/usr/bin/env bash
# tapedeck replay: a line for each step, loops, steps that stop early, phases, monitors, other sizes and budgets.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.tape ./*.graph ./*.npy

expect 0 record cnn --batch 4 -o c.tape; expect 0 plan c.tape --json; keep_all=$(number peak_bytes)
# Scalars, one line a step; not with --json, not with -q.
expect 0 replay c.tape --steps 3; quiet; [ "$(grep -cE '^step [123]: loss [0-9.]+$' out)" = 3 ] || fail "no three lines: $(head -5 out)"
expect 0 replay c.tape --steps 3 -q; quiet; grep -q '^step ' out && fail "-q prints lines"
expect 0 replay c.tape --steps 3 --json; quiet; grep -q '^step ' out && fail "--json prints lines"
for key in step_times_ms scalars name steps values; do answered "\"$key\":"; done
python3 - << 'P' || fail "the JSON of three steps is not as it should be"
import json
j = json.load(open("out"))
assert len(j["step_times_ms"]) == 3 and all(t > 0 for t in j["step_times_ms"])
assert min(j["step_times_ms"]) == j["step_ms"]["min"] and sorted(j["step_times_ms"])[1] == j["step_ms"]["median"]
(loss,) = j["scalars"]
assert loss["name"] == "loss" and loss["steps"] == [1, 2, 3] and len(set(loss["values"])) == 3
P
# A number that is none is a string in the JSON.
printf 'graph n(%%x: f32[]) {\n  %%y: f32[] = log(%%x)\n  %%z: i64[] = full() {shape=[], dtype=i64, value=-7}\n  return %%y, %%z\n}\n' > n.graph
expect 0 replay n.graph --input x=zeros; answered 'step 1: y -inf, z -7'; expect 0 replay n.graph --input x=zeros --json; answered '"-inf"'

# Loops.
expect 0 replay c.tape --loop 0.3 --json; quiet; [ "$(number steps)" -ge 1 ] || fail "no steps in 0.3 s"
expect 0 replay n.graph --loop 0.05 --json; [ "$(number steps)" -gt 3 ] || fail "$(number steps) small steps in 0.05 s"
expect 0 replay n.graph --loop 20ms --json; [ "$(number steps)" -ge 1 ] || fail "no steps in 20 ms"
for bad in 0s 1e-9 5parsecs s -1s 2e6 300h; do expect 2 replay c.tape --loop $bad; said "'$bad' is not a time; give 0.001 to 1000000 seconds"; done
expect 2 replay c.tape --loop 1 --steps 3; said '--loop and --steps exclude each other'; expect 2 replay c.tape --loop 0; expect 2 replay c.tape --loop 1 --profile; said 'exclude each other'

# The last step stops behind a value, which is shown and written.
printf 'graph g(%%x: f32[2]) {\n  %%a: f32[2] = exp(%%x)\n  %%s: f32[] = sum(%%a) {axes=[0], keepdims=false}\n  %%b: f32[] = neg(%%s)\n  return %%b\n}\n' > g.graph
expect 0 replay g.graph --input x=zeros --until s --steps 2; quiet; answered 'step 1: b -2'; answered 'step 2: s 2'; answered "stopped behind 's'"
expect 0 replay g.graph --input x=zeros --until a -o a=a.npy; expect 0 replay g.graph --input x=zeros --until a --expect a=a.npy --json; answered '"until": "a"'
expect 0 replay g.graph --input x=zeros --until x -o x=x.npy
expect 2 replay g.graph --until aa; said "no such value: did you mean 'a'?" ; expect 2 replay g.graph --until s -o b=b.npy; said "there is no output 'b'"; absent b.npy
for other in '--save x.tape' --check-eager --profile '--loop 1' '--trace t.json'; do
  # shellcheck disable=SC2086
  expect 2 replay g.graph --until s $other; said 'exclude each other'
done

# Phases, in order, timed; the outputs of forward are there after forward.
expect 0 replay c.tape --phase update --steps 2 --json; quiet
for key in phase_ms forward backward update; do answered "\"$key\":"; done
expect 0 replay c.tape --steps 2 --json; cp out whole; expect 0 replay c.tape --steps 2 --phase forward --json
python3 - << 'P' || fail "the loss after forward is not that of the whole step"
import json
a, b = json.load(open("whole")), json.load(open("out"))
assert a["scalars"] == b["scalars"] and list(b["phase_ms"]) == ["forward"]
P
expect 0 replay c.tape --phase update --save u.tape; expect 0 replay c.tape --save w.tape
cmp -s u.tape w.tape || fail "a step in phases leaves another state"
expect 2 replay c.tape --phase forward --save x.tape; said 'half written'; absent x.tape
expect 2 replay c.tape --phase inference; said "is not one of forward, backward, update"; expect 2 replay g.graph --phase backward; said 'the graph has no backward nodes'
expect 2 replay c.tape --phase forward --until loss; said 'exclude each other'

# Monitors see values by op, module path and name, in the order of nodes on any number of threads.
expect 0 replay g.graph --input x=zeros --monitor 's*'; quiet; answered 'step 1: sum s f32[]: min 2, max 2, mean 2'
expect 0 replay g.graph --input x=zeros --monitor neg --monitor-inputs; answered 'step 1: neg b f32[]: min -2'; answered 'step 1: neg b.input0 f32[]: min 2, max 2, mean 2'
expect 0 replay g.graph --input x=zeros --monitor exp --monitor-inputs; answered 'step 1: exp x f32[2]: min 0, max 0, mean 0'
expect 2 replay g.graph --monitor-inputs; said '--monitor-inputs'
expect 0 plan c.tape --threads 2 -o p2.tape
for threads in 1 2; do
  expect 0 replay p2.tape --monitor 'conv1' --monitor relu --monitor-inputs --threads $threads -q --json; quiet; sed -n '/"monitored"/,/^  ]/p' out > seen.$threads
done
cmp -s seen.1 seen.2 || fail "monitors depend on the number of threads"
[ "$(grep -c '"not_finite": 0' out)" -ge 4 ] || fail "the monitors saw $(grep -c not_finite out) values"
expect 2 replay c.tape --monitor convv1; said "--monitor convv1"; said "did you mean 'conv1'"

# Another budget, and other sizes.
expect 0 replay c.tape --budget 60% --check-eager --json; quiet; [ "$(number observed_peak_bytes)" -le $((keep_all * 60 / 100)) ] || fail "$(number observed_peak_bytes) is above 60 % of $keep_all"
expect 4 replay c.tape --budget 1KiB; said floor; expect 2 replay c.tape --budget lots
expect 0 plan c.tape --budget 60% -o p.tape; expect 0 replay p.tape --budget 100GiB --json; [ "$(number observed_peak_bytes)" = "$keep_all" ] || fail "the budget of the file holds"
expect 0 record cnn --batch 8 -o c8.tape; expect 0 plan c8.tape --json; peak8=$(number peak_bytes)
expect 0 replay c.tape --dims batch=8 --check-eager --json; said 'the samples of x, y have other sizes'; answered '"equal_to_eager": true'
[ "$(number planned_peak_bytes)" = "$peak8" ] || fail "batch=8 plans to $(number planned_peak_bytes), not $peak8"
expect 0 replay c.tape --dims batch=8 --save r.tape -q; quiet; expect 0 info r.tape; answered 'batch: 8'; answered 'f32[8,3,32,32]'
expect 0 replay g.graph --dims x@0=5 --input x=zeros; quiet; answered 'b -5'
printf 'graph d(%%x: f32[4,2] [dims="b=1..64, x@0=b"]) {\n  %%h: f32[8] = reshape(%%x) {shape=[8]} [dims="h.shape.0=2*b"]\n  %%s: f32[] = sum(%%h) {axes=[0], keepdims=false}\n  return %%s\n}\n' > d.graph
expect 0 replay d.graph --dims b=32 --input x=rand:1 --until h -o h=h.npy; quiet; grep -q '(64,)' h.npy || fail "h is $(head -c 120 h.npy)"
expect 2 replay d.graph --dims b=65; said 65; expect 2 replay d.graph --dims x@0=5; said reshape
expect 2 replay c.tape --dims bacth=8; said "did you mean 'batch'"; expect 2 replay c.tape --dims batch=0; said 'is not a size'; expect 2 replay c.tape --dims batch=99999999999999999999
expect 2 replay g.graph --dims n=3; said 'INPUT@AXIS=SIZE'; expect 2 replay g.graph --dims x@1=3; said 'no axis of x'; expect 2 replay g.graph --dims z@0=3; said 'its inputs are: x'
expect 0 record rnn_cell --batch 2 --width 8 -o n.tape; expect 0 replay n.tape --dims batch=3 -q --check-eager; expect 2 replay n.tape --dims width=16; said 'would become'
expect 0 print c.tape; sed 's/ relu(/ tanh(/' out > t.graph; expect 2 replay t.graph --dims batch=8; said 'INPUT@AXIS'
# -v says how long each part took.
expect 0 replay c.tape -v; said 'tapedeck: loading: '; said 'tapedeck: replaying: '
finish
