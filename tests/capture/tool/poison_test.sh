#!/usr/bin/env bash
# TAPEDECK_POISON: small models of all kinds replay on two threads with every byte watched, and their bits are those of eager execution.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape

for model in mlp cnn rnn_cell mlp_attention "lstm_lm --seq 4 --layers 1 --width 16" "gpt2 --seq 8 --layers 1 --width 32" "resnet18 --image 32 --width 8" \
             "unet --image 32 --width 4"; do
  expect 0 record $model --batch 2 -o m.tape
  expect 0 plan m.tape --threads 2 --segment-us 5 -o p.tape
  [ "$(awk '$1 == "segments" { print $2 }' out)" -gt 2 ] || fail "$model: $(grep segments out)"
  for level in 1 2; do TAPEDECK_POISON=$level expect 0 replay p.tape --threads 2 --steps 2 --check-eager; done
done
finish
