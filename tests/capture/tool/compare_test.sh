#!/usr/bin/env bash
# tapedeck compare: graphs, plans and numbers, with the names of what differs. tapedeck export: dot and jsonl.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph ./*.dot ./*.jsonl

expect 0 record cnn --batch 4 -o a.tape; cp a.tape b.tape
expect 0 compare a.tape b.tape; quiet; answered 'graph: equal; 157 nodes and 157: 157 same'; answered 'plan: none in either'; answered 'numbers: equal; 34 tensors are in both, 0 differ'
[ "$(tail -1 out)" = equal ] || fail "the last line is $(tail -1 out)"
# Another plan, and the figures that differ.
expect 0 plan a.tape -o pa.tape; expect 0 plan a.tape --budget 60% -o pb.tape
expect 1 compare a.tape pa.tape; answered 'DIFFERS; only B has one'
expect 1 compare pa.tape pb.tape; quiet; for word in 'graph: equal' 'plan: DIFFERS' peak_bytes recomputed 'placed otherwise' 'numbers: equal'; do answered "$word"; done
expect 0 compare pa.tape pa.tape; answered 'plan: equal'
expect 1 compare pa.tape pb.tape --json; quiet; for key in schema equal graph plan numbers figures recomputed placements metadata; do answered "\"$key\":"; done
python3 - << 'P' || fail "the JSON of compare is not as it should be"
import json
j = json.load(open("out"))
assert j["schema"] == "tapedeck.compare/1" and not j["equal"] and j["graph"]["equal"] and not j["plan"]["equal"] and j["numbers"]["equal"]
peak = {f["name"]: f for f in j["plan"]["figures"]}["peak_bytes"]
assert int(peak["b"]) <= int(peak["a"]) * 0.61
P
# Other weights, and a tolerance within which they are equal.
expect 0 replay a.tape --save after.tape -q
expect 1 compare a.tape after.tape; answered 'graph: equal'; answered 'numbers: DIFFERS'; answered 'state conv1.weight: '; answered '; worst ['
expect 1 compare a.tape after.tape --limit 1; answered 'more; --limit 0 prints all'; [ "$(grep -c '^  state ' out)" = 1 ] || fail "--limit 1 prints $(grep -c '^  state ' out)"
expect 0 compare a.tape after.tape --atol 1e9 --rtol 1
# Another batch: every type, no structure.
expect 0 record cnn --batch 8 -o c.tape; expect 1 compare a.tape c.tape; answered 'input x'; answered 'batch: 4 | 8'
# A changed op, by name.
printf 'graph g(%%x: f32[3]) {\n  %%a: f32[3] = exp(%%x)\n  %%b: f32[3] = neg(%%a)\n  return %%b\n}\n' > one.graph
sed 's/exp/sin/' one.graph > two.graph; sed 's/%a/%z/g' one.graph > renamed.graph
expect 1 compare one.graph two.graph; answered '  node a'; answered '    A  %a: f32[3] = exp(%x)'; answered '    B  %a: f32[3] = sin(%x)'; answered '1 same, 0 renamed, 1 changed'
expect 0 compare one.graph renamed.graph; answered 'renamed a to z'
# The level of a plan is stored and compared, and a plan that replaces it has the same level: two exp stay two.
printf 'graph g(%%x: f32[3]) {\n  %%a: f32[3] = exp(%%x)\n  %%b: f32[3] = exp(%%x)\n  return %%a, %%b\n}\n' > twice.graph
for level in 0 2; do
  expect 0 plan twice.graph --level $level -o level$level.tape; answered 'passes'
  expect 0 replay level$level.tape --dims x@0=6 -q --trace level$level.json
done
expect 0 info level0.tape; answered 'passes none'
expect 0 plan twice.graph --level 1 --json; answered '"level": "cleanups"'
expect 1 compare level0.tape level2.tape; answered '  level'; answered 'none'
exps() { grep -o '"name":"exp"' "$1" | wc -l; }
[ "$(exps level0.json) $(exps level2.json)" = "2 1" ] || fail "replays at other sizes run $(exps level0.json) and $(exps level2.json) exp"
expect 3 compare one.graph missing.graph; expect 2 compare one.graph; said 'OTHER_FILE is missing'

# Export: for Graphviz and for scripts.
expect 0 export dot one.graph; quiet; answered 'digraph "g" {'; answered 'n0 -> n1'
expect 0 export jsonl pb.tape --planned -o g.jsonl; quiet; [ ! -s out ] || fail "the text is printed too"
grep -q '"clone_of"' g.jsonl || fail "nothing is recomputed in the planned graph"
expect 0 export jsonl a.tape; cp out a.jsonl
python3 - << 'P' || fail "a line is no JSON"
import json
kinds = [json.loads(line)["kind"] for line in open("a.jsonl")]
assert kinds[0] == "graph" and kinds.count("node") == 157 and kinds.count("output") == 1 and kinds.count("update") == 31, kinds
P
expect 0 export dot a.tape --json; answered '"schema": "tapedeck.export/1"'; answered '"text": "digraph'
expect 0 export dot a.tape -o a.dot --json; answered '"file": "a.dot"'; grep -q cylinder a.dot || fail "no state in a.dot"
if command -v dot > /dev/null; then dot -Tsvg a.dot > a.svg || fail "dot does not read it"; rm -f a.svg; fi
expect 2 export svg a.tape; said "'svg' is not one of dot, jsonl, onnx"; expect 3 export dot missing.tape; expect 2 export dot one.graph -o one.graph; said 'it would overwrite'

# info: figures of the graph.
expect 0 info a.tape; for word in 'parameters: 33,178 in 30 tensors' 'phases: forward ' 'flops: ' 'conv2d  ' 'dims: none' 'versions: tapedeck '; do answered "$word"; done
expect 0 info a.tape --json; quiet; for key in parameters flops phases ops dims versions tape_format; do answered "\"$key\":"; done
printf 'graph d(%%x: f32[4,2] [dims="b=1..64, x@0=b"]) {\n  %%h: f32[4,2] = neg(%%x)\n  return %%h\n}\n' > d.graph
expect 0 info d.graph; answered 'dims: b=1..64, x@0=b'
expect 0 info a.tape --json; python3 - << 'P' || fail "the sums of info do not agree"
import json
j = json.load(open("out"))
assert sum(o["nodes"] for o in j["ops"]) == j["nodes"] == sum(p["nodes"] for p in j["phases"])
assert abs(sum(o["flops"] for o in j["ops"]) - j["flops"]) < 1 and j["parameters"] == 33178
P
finish
