#!/usr/bin/env bash
# tapedeck replay: values of any node where the last step stops, also those whose bytes are gone; stops at nodes and at NaN.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.tape ./*.graph ./*.npy

cat > g.graph << 'G'
graph g(%x: f32[4]) {
  %a: f32[4] = exp(%x)
  %b: f32[4] = neg(%a)
  %c: f32[4] = tanh(%b)
  %s: f32[] = sum(%c) {axes=[0], keepdims=false}
  return %s
}
G
# A value that is gone is computed again; its statistics, histogram and numbers are shown.
expect 0 replay g.graph --input x=zeros --until c --value a --value c --value x; quiet
answered 'a: f32[4], made by exp at node 0; computed again by 1 node in'; answered 'min 1, max 1, mean 1, deviation 0'
answered 'c: f32[4], made by tanh at node 2; its bytes are there'; answered '[1. 1. 1. 1.] f32[4]'
answered 'x: f32[4], input; its bytes are there'; answered '4 of 4 are zero'
# A node by its number; a value by %NAME; without --value the results of the node are shown.
expect 0 replay g.graph --input x=rand:1 --until 1 -o b=b.npy; quiet; answered 'step 1: neg b f32[4]: min'; answered 'stopped behind node 1, with 2 of 4 nodes left'
expect 0 replay g.graph --input x=rand:1 --until %b --expect b=b.npy; quiet; answered 'as expected'
expect 0 replay g.graph --input x=rand:1 --value b --expect b=b.npy --json; answered '"equal": true'
expect 0 replay g.graph --input x=rand:1 --until 2 --value b -o b=again.npy; cmp -s b.npy again.npy || fail "b is another one once its bytes are gone"
# At the end of the step, where the outputs are told as ever.
expect 0 replay g.graph --input x=zeros --value a --json; quiet
python3 - << 'P' || fail "the JSON of a value is not as it should be"
import json
j = json.load(open("out"))
(a,) = j["values"]
assert a["name"] == "a" and a["op"] == "exp" and a["node"] == 0 and a["type"] == "f32[4]", a
assert (a["elements"], a["min"], a["max"], a["mean"], a["deviation"], a["zeros"], a["nan"], a["infinite"]) == (4, 1, 1, 1, 0, 0, 0, 0), a
assert a["histogram"] == {"min": 1, "max": 1, "counts": [4]} and a["nodes_again"] == 1 and a["extra_bytes"] >= 32, a
assert "stopped" not in j and j["kept_bytes"] == 0 and len(j["scalars"]) == 1
P
expect 2 replay g.graph --value aa; said "--value aa: the plan has no such value: did you mean 'a'?"
expect 2 replay g.graph --until 4; said 'the plan has nodes 0 to 3; the value of that number is %4'
expect 2 replay g.graph --until 99999999999; said 'nodes 0 to 3'
expect 5 replay g.graph --until a --value c; said '%c is not there yet'; said 'it is node 3 of 4 in the order of the plan'
expect 2 replay g.graph --value a --loop 1; said 'exclude each other'; expect 2 replay g.graph --value a --profile; said 'exclude each other'

# The first NaN.
cat > n.graph << 'G'
graph n(%x: f32[3]) {
  %l: f32[3] = log(%x)
  %d: f32[3] = sub(%l, %l)
  %e: f32[3] = exp(%d)
  return %e
}
G
expect 0 replay n.graph --input x=zeros --stop-at-nan --value d --json; quiet
python3 - << 'P' || fail "the stop at NaN is not as it should be"
import json
j = json.load(open("out"))
assert j["stopped"] == {"reason": "not_finite", "node": 1, "nodes": 3, "nodes_left": 1, "value": "d", "element": 0, "number": "nan"}, j["stopped"]
(d,) = j["values"]
assert d["nan"] == 3 and d["histogram"]["counts"] == [], d
P
expect 0 replay n.graph --input x=zeros --stop-at-infinity; answered "it made an infinity at element 0 of 'l'"; answered 'behind node 0, with 2 of 3 nodes left'
expect 0 replay g.graph --input x=zeros --stop-at-nan; answered 'came to its end'
expect 2 replay n.graph --stop-at-nan --phase forward; said 'exclude each other'; expect 2 replay n.graph --stop-at-nan --save x.tape; said 'half written'

# A step of training under a budget: the same bits as the step that keeps everything, wherever it stops; the state is from before the step.
expect 0 record cnn --batch 4 -o c.tape; expect 0 plan c.tape --budget 60% -o p.tape
expect 0 replay c.tape --value conv1.conv2d -o conv1.conv2d=kept.npy
expect 0 replay p.tape --value conv1.conv2d -o conv1.conv2d=gone.npy; answered 'computed again by'
cmp -s kept.npy gone.npy || fail "a value is another one after it was computed again"
expect 0 replay p.tape --value conv1.weight -o conv1.weight=before.npy; answered 'kept           '; expect 0 replay p.tape --until 0 --value conv1.weight -o conv1.weight=start.npy
cmp -s before.npy start.npy || fail "the weight is not that from before the step"
expect 0 replay c.tape --phase forward --value loss; answered 'loss: f32[]'
finish
