#!/usr/bin/env bash
# tapedeck import onnx: a model becomes a graph or a step of training that is planned and replayed like any other; faults are said with their place.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
models=$(dirname "${BASH_SOURCE[0]}")/../onnx/models
rm -f ./*.tape ./*.onnx ./*.graph ./*.bin
"$tool" import onnx "$models/mlp_dropout/model.onnx" > out 2> err
if [ $? = 6 ]; then said 'no support for ONNX'; finish; fi

# As it is: a text without -o, a tape that runs with its own weights.
expect 0 import onnx "$models/mlp_dropout/model.onnx"; quiet; answered 'linear('; answered 'relu('
expect 0 import onnx "$models/mlp_dropout/model.onnx" -o net.tape; quiet
answered 'wrote net.tape: 5 nodes of 3 of ONNX (opset 20, pytorch 2.15.0'; answered '4 parameters'
expect 0 verify net.tape; expect 0 replay net.tape --check-eager --json; answered '"equal_to_eager": true'

# A step of training: planned under a budget, equal to eager code, with the notes on what the exporter left out.
expect 0 import onnx "$models/resnet_block/model.onnx" -o step.tape --train --loss cross_entropy --optimizer adamw
said 'no batch normalization'; said 'training=torch.onnx.TrainingMode.TRAINING'; said 'no dropout'; answered 'target i64[2]'
expect 0 import onnx "$models/resnet_block_train/model.onnx" -o step.tape --train --loss cross_entropy
expect 0 plan step.tape --budget 95% -o planned.tape; expect 0 replay planned.tape --check-eager --json; answered '"equal_to_eager": true'
expect 0 import onnx "$models/resnet_block_train/model.onnx" -o step.tape --train --loss cross_entropy --json; quiet
answered '"schema": "tapedeck.import_onnx/1"'; answered '"initializer": "conv.weight"'; answered '"BatchNormalization": 6'; answered '"opset": 20'
expect 0 import onnx "$models/mlp_dropout_train/model.onnx" -o drop.tape --train --loss cross_entropy; expect 0 print drop.tape; answered 'dropout('
expect 0 import onnx "$models/transformer/model.onnx" -o types.tape --train --loss mse --abstract; expect 0 plan types.tape

# Open sizes, by name and by place.
expect 2 import onnx "$models/resnet_block_dynamic/model.onnx"; said '--dims batch=8'
expect 0 import onnx "$models/resnet_block_dynamic/model.onnx" --dims batch=5; answered 'f32[5,3,16,16]'
expect 0 import onnx "$models/resnet_block_dynamic/model.onnx" --dims x.0=7; answered 'f32[7,3,16,16]'
for dims in batch batch= =5 batch=-1 batch=5,batch=6 batch=5,depth=3; do
  expect 2 import onnx "$models/resnet_block_dynamic/model.onnx" --dims $dims; [ -s err ] || fail "--dims $dims says nothing"
done

# Which initializers are parameters.
expect 0 import onnx "$models/mlp_dropout/model.onnx" -o some.tape --as-parameters '*.weight' --json; [ "$(grep -c '"initializer"' out)" = 2 ] || fail "$(cat out)"
expect 2 import onnx "$models/mlp_dropout/model.onnx" --as-parameters 'nothing*'; said "no initializer of the model matches 'nothing*'"

# Faults: 2 for the line, 3 for the file; nothing is written.
expect 2 import onnx - -o x.tape; expect 2 import onnx; said 'FILE is missing'
expect 2 import onnx "$models/mlp_dropout/model.onnx" --loss mse; said '--train'
expect 2 import onnx "$models/mlp_dropout/model.onnx" --train -o x.tape; said 'needs a loss'; absent x.tape
expect 2 import onnx "$models/mlp_dropout/model.onnx" --train --loss mss -o x.tape; said "did you mean 'mse'"; absent x.tape
for how in held returned; do
  expect 2 import onnx "$models/mlp_dropout/model.onnx" --results $how -o x.tape; said '--results is for the formats graph and simrd'; absent x.tape
done
expect 2 import graph net.json --train; said '--train belongs to the format onnx'
expect 3 import onnx missing.onnx -o x.tape; said missing.onnx; expect 3 import onnx . -o x.tape; absent x.tape
head -c 2000 "$models/mlp_dropout/model.onnx" > cut.onnx; expect 3 import onnx cut.onnx -o x.tape; said 'cut.onnx: '; absent x.tape
: > empty.onnx; expect 3 import onnx empty.onnx; said 'it has no graph'; printf 'PK\003\004' > zip.onnx; expect 3 import onnx zip.onnx; said zip.onnx
expect 3 import onnx net.tape -o x.tape; absent x.tape
expect 3 import onnx "$models/mlp_dropout/model.onnx" -o no/such/folder.tape
finish
