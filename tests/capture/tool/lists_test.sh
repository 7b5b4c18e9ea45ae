#!/usr/bin/env bash
# models, ops and settings: for people one a line, for programs one JSON object; models as a table, or as names with -q.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape

# A table, and bare names with -q: sorted, each of which `record` takes.
expect 0 models; quiet; answered 'parameters'; grep -qE '^vgg16 +138,357,544 +[0-9.]+ GFLOP +[0-9]+ +batch [0-9]+, image 224 +[A-Za-z]' out || fail "the line of vgg16: $(grep vgg16 out)"
cut -d ' ' -f 1 out | tail -n +2 > column
expect 0 models --quiet; quiet
cp out names
cmp -s names column || fail "the table lists other models"
LC_ALL=C sort -c names || fail "models are not sorted"
grep -vqE '^[a-z0-9_]+$' names && fail "not bare names: $(cat names)"
for model in mlp cnn lenet vgg16 resnet152 vit_b16; do grep -qx "$model" names || fail "$model is missing"; done
while read -r model; do
  expect 0 record "$model" --abstract -o a.tape; expect 0 verify a.tape; expect 0 info a.tape; answered "model: $model"
done < names

expect 0 models --json; quiet
for key in schema models name doc options defaults parameters nodes flops; do answered "\"$key\":"; done
answered '"schema": "tapedeck.models/1"'; answered '"parameters": 138357544'
[ "$(grep -c '"name":' out)" = "$(wc -l < names)" ] || fail "the JSON lists other models"

# Options: what a model takes reaches the file, what it does not is refused.
expect 0 record resnet18 --batch 2 --image 64 --width 8 --dtype bf16 --optimizer adamw --abstract -o r.tape
expect 0 info r.tape; for line in 'batch: 2' 'image: 64' 'width: 8' 'dtype: bf16' 'optimizer: adamw' 'f32[2,3,64,64]'; do answered "$line"; done
expect 2 record resnet18 --seq 5 -o x.tape; said "model resnet18 takes no seq; it takes batch, image, width, dtype"; absent x.tape
expect 2 record unet --image 100 -o x.tape; said "multiple of 16"; absent x.tape
expect 2 record mlp --dtype f64 -o x.tape; expect 2 record mlp --image 0 -o x.tape; expect 2 record mlp --layers -1 -o x.tape
expect 0 record --help; for option in --batch --image --seq --layers --width --dtype --optimizer --seed --abstract --output --json; do answered "$option"; done
for command in info print verify plan replay calibrate models ops settings devices view; do expect 0 "$command" --help; answered "$command"; done

# Ops: aligned columns, and everything a block says.
expect 0 ops; quiet
cp out ops
grep -qE '^add  +[^ ]' ops || fail "no line for add"
[ "$(grep -oE '^[^ ]+ +' ops | awk '{ print length }' | sort -u | wc -l)" = 1 ] || fail "the docs are not aligned"
expect 0 ops --json; quiet
for key in name doc types inputs outputs attributes kind required default gradient no_gradient traits in_place batch_strides random effect cost example flops bytes us workspace \
           version cuda examples; do answered "\"$key\":"; done
answered '"schema": "tapedeck.ops/1"'
[ "$(grep -cE '^      "name":' out)" = "$(wc -l < ops)" ] || fail "the JSON lists other ops"
op() { sed -n "/^      \"name\": \"$1\",\$/,/^    }/p" out > one; }   # one op of the answer
has() { grep -qF -- "$1" one || fail "the op lacks $1: $(head -c 1000 one)"; }
op matmul; has '"gradient": true'; has '"no_gradient": null'; has '"low_precision"'; has '"f16"'; grep -q '"bool"' one && fail "matmul takes no bool"
op argmax; has '"gradient": false'; grep -q '"no_gradient": null' one && fail "argmax has no reason"
op uniform; has '"random": true'; has '"kind": "ints"'; has '"required": true'
op concat; has '"max": null'; has '"bool"'

# Settings: the variables with their values.
expect 0 settings; quiet; answered TAPEDECK_DEBUG
expect 0 settings --json; quiet; answered '"schema": "tapedeck.settings/1"'; answered '"name": "TAPEDECK_DEBUG"'
if command -v python3 > /dev/null; then
  for list in ops models settings devices; do
    expect 0 $list --json
    python3 -c 'import json, sys; json.load(open("out"))' || fail "$list --json is no JSON"
  done
fi
finish
