#!/usr/bin/env bash
# tapedeck export onnx: a step becomes a model, and the model a graph that computes the same; what cannot be exported is said.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.onnx ./*.onnx.data ./*.graph
expect 0 record lenet --batch 2 -o lenet.tape
"$tool" export onnx lenet.tape -o lenet.onnx > out 2> err
if grep -q 'no support for ONNX' err; then echo "this build has no support for ONNX"; exit 0; fi

expect 0 export onnx lenet.tape -o lenet.onnx; quiet; answered 'wrote lenet.onnx: '; answered ' nodes, '
expect 0 export onnx lenet.tape -o beside.onnx --external-data --json; quiet
python3 - << 'P' || fail "the JSON of export onnx is not as it should be"
import json, os
j = json.load(open("out"))
assert j["schema"] == "tapedeck.export/1" and j["format"] == "onnx" and j["file"] == "beside.onnx" and j["text"] is None
assert j["model_nodes"] > j["nodes"] > 50
assert j["bytes"] == os.path.getsize("beside.onnx") + os.path.getsize("beside.onnx.data")
P

# There and back: the same loss, to the last bit, from the same inputs.
expect 0 import onnx lenet.onnx -o again.tape; answered 'opset 20, tapedeck'
expect 0 import onnx beside.onnx -o beside.tape
for tape in lenet again beside; do
  expect 0 replay $tape.tape --input x=rand:1 --input y=rand:2 --input lr=rand:3 -o loss=$tape.npy
done
cmp -s lenet.npy again.npy || fail "the imported model has another loss"
cmp -s lenet.npy beside.npy || fail "the imported model with external data has another loss"

# Faults.
expect 2 export onnx lenet.tape; said '-o model.onnx'
expect 2 export onnx lenet.tape -o -
expect 2 export onnx lenet.tape -o p.onnx --planned; said '--planned'
expect 2 export dot lenet.tape --external-data; said 'export onnx'
expect 2 export dot lenet.tape --random; said 'export onnx'
expect 2 export onnx lenet.tape -o lenet.tape; said 'it would overwrite'
expect 3 export onnx missing.tape -o m.onnx
expect 0 record mlp --batch 2 -o mlp.tape
expect 2 export onnx mlp.tape -o mlp.onnx; said "no counterpart of 'dropout' (node 6, mlp.cpp:11: random numbers"; said '--random'
expect 0 record lenet --batch 2 --abstract -o abstract.tape
expect 2 export onnx abstract.tape -o a.onnx; said 'record it without --abstract'
for name in p.onnx m.onnx mlp.onnx a.onnx; do [ ! -e $name ] || fail "$name is there"; done

# A model that draws its own numbers comes back as a step of training.
expect 0 export onnx mlp.tape -o random.onnx --random; quiet; answered 'wrote random.onnx: '
expect 0 import onnx random.onnx -o random.tape
expect 0 replay random.tape --steps 2; quiet
