#!/usr/bin/env bash
# tapedeck import: a graph or a trace of another program becomes a file that can be planned and replayed; each fault is said with its place.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.json ./*.log ./*.gz ./*.tape ./*.graph

# A chain of three: a of 100 bytes is kept for c. At b's making 100 + 10 bytes are alive, at c's 100 + 10 + 50.
cat > net.json <<'JSON'
{"graph": {"name": "net"},
 "nodes": [{"id": 0, "name": "a", "cost_ram": 100, "cost_cpu": 30}, {"id": 1, "name": "b", "cost_ram": 10, "cost_cpu": 20},
  {"id": 2, "name": "c", "cost_ram": 50, "cost_cpu": 50, "backward": true}],
 "links": [{"source": 0, "target": 1}, {"source": 0, "target": 2}, {"source": 1, "target": 2}]}
JSON
expect 0 import graph net.json; quiet; cp out net.graph; answered '%c: u8[50] = opaque(%a, %b) {us=50.0}'; answered 'phase=backward'
expect 0 import graph net.json -o again.graph; quiet; cmp -s again.graph net.graph || fail "-o writes another text"
expect 0 import graph net.json -o net.tape; quiet; [ ! -s out ] || fail "-o net.tape printed: $(cat out)"
expect 0 verify net.tape; expect 0 print net.tape; cmp -s out net.graph || fail "the file holds another graph: $(cat out)"
expect 0 plan net.tape --strategy none --align 1 --json; [ "$(number peak_bytes)" = 160 ] || fail "peak $(number peak_bytes), by hand 160"
expect 0 replay net.tape --check-eager --json; answered '"equal_to_eager": true'
expect 0 import graph net.json --json -o net.tape; quiet
answered '"schema": "tapedeck.import/1"'; answered '"microseconds": 100.0'; answered '"file": "net.tape"'; answered '"trace": null'
[ "$(number nodes)" = 4 ] && [ "$(number links)" = 4 ] && [ "$(number bytes)" = 160 ] && [ "$(number outputs)" = 1 ] || fail "$(cat out)"
expect 0 import graph net.json --results returned; answered 'return %c'

# A trace, as it is, compressed, and through a pipe.
{
  echo '{"INSTRUCTION":"CONSTANT","NAME":"w"}'; echo '{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"100"}'
  echo '{"INSTRUCTION":"CALL","NAME":"conv","ARGS":["w"],"RESULT":["h"],"TIME":"5000"}'
  echo '{"INSTRUCTION":"MEMORY","NAME":"h","MEMORY":"400"}'; echo '{"INSTRUCTION":"ALIAS","NAME":"h","ALIAS":"-1"}'
} > step.log
gzip -k step.log
expect 0 import simrd step.log; cp out step.graph; said '1 calls, 0 of them only views, 0 mutations; the program held 500 bytes'
answered 'graph step(%w: u8[100])'; answered '%h: u8[400] = opaque(%w) {us=5.0}'
expect 0 import simrd step.log.gz -q; quiet; cmp -s out step.graph || fail "compressed: $(cat out)"
"$tool" import simrd - -q < step.log.gz > out; sed 's/stdin/step/' out | cmp -s - step.graph || fail "stdin: $(cat out)"
expect 0 import simrd step.log --json; quiet; [ "$(number held_peak_bytes)" = 500 ] && [ "$(number constant_bytes)" = 100 ] || fail "$(cat out)"
expect 0 import simrd step.log -o step.tape -q; expect 0 replay step.tape --check-eager

# Faults: 2 for the line, 3 for the file, with the place; and nothing is written.
expect 2 import; expect 2 import graph; said 'FILE is missing'; expect 2 import csv net.json; said "'csv' is not one of onnx, graph, simrd"
expect 2 import graph net.json --results lost; expect 2 import graph net.json -o net.json; said net.json
expect 3 import graph missing.json; said missing.json; expect 3 import graph . ; expect 3 import graph net.json -o no/such/folder.tape
expect 3 import simrd net.json -o x.tape; said 'net.json:1: error: '; absent x.tape
expect 3 import graph step.log; said 'step.log: error: not JSON'
sed 's/"target": 1/"target": 7/' net.json > bad.json; expect 3 import graph bad.json -o x.tape; absent x.tape
said 'bad.json:4: error: link 0: its target is 7, and no node has this id'
sed 's/"source": 1/"source": 2/' net.json > bad.json; expect 3 import graph bad.json; said 'reads its own result'
sed 's/"cost_ram": 10,/"cost_ram": -10,/' net.json > bad.json; expect 3 import graph bad.json; said 'bad.json:2: error: node 1 ("b"): "cost_ram" is -10'
head -c 100 net.json > bad.json; expect 3 import graph bad.json; said 'bad.json: error: not JSON'
head -n 4 step.log > bad.log; expect 3 import simrd bad.log; said 'bad.log:4: error: the trace ends before the ALIAS of "h" of line 3'
head -c 50 step.log.gz > bad.log; expect 3 import simrd bad.log; said 'bad.log: cannot be decompressed: its compressed bytes end in the middle'
# 300 MB of zeros in 300 KB.
head -c 300000000 /dev/zero | gzip -1 > bomb.gz; expect 3 import graph bomb.gz; said 'it gives more than 268435456 bytes'
: > empty.json; expect 3 import graph empty.json; said empty.json; expect 3 import simrd empty.json; said 'the trace calls no op'
finish
