#!/usr/bin/env bash
# replay and bench --device cuda, with a fake device in place of a GPU: the bits of the CPU, steps that are launched ahead of their results, faults.
. "$(dirname "${BASH_SOURCE[0]}")/../capture/tool/check.bash"
tool=${TAPEDECK_TOOL_ON_FAKE_DEVICE:?}
rm -rf ./*.tape ./*.graph ./*.npy good short zero

# A step that runs on the device while it is recorded makes the file of the host.
for model in mlp lstm_lm; do
  expect 0 record $model --batch 2 --seed 5 -o host.tape
  expect 0 record $model --batch 2 --seed 5 --device cuda -o there.tape; quiet
  cmp -s host.tape there.tape || fail "$model recorded on the device is another file than recorded on the host"
done
expect 2 record mlp --device gpu -o no.tape; said "no device 'gpu'"; absent no.tape
expect 2 record mlp --device cuda --abstract -o no.tape; absent no.tape

# Six steps leave the state and the outputs that the CPU leaves. All but the first are launched while their inputs are read ahead; the last one is waited for.
expect 0 record cnn --batch 4 -o c.tape
expect 0 replay c.tape --steps 6 --threads 1 --save cpu.tape --json; cp out cpu.json
expect 0 replay c.tape --steps 6 --device cuda --save gpu.tape --json; quiet; cp out gpu.json
cmp -s cpu.tape gpu.tape || fail 'the state after six steps differs from that of the CPU'
python3 - << 'P' || fail 'the JSON of six steps is not as it should be'
import json
cpu, gpu = json.load(open("cpu.json")), json.load(open("gpu.json"))
assert cpu["scalars"] == gpu["scalars"], (cpu["scalars"], gpu["scalars"])
device = gpu["on_device"]
assert device["steps"] == 6 and device["steps_ahead"] == 4, device
assert device["graphs_per_step"] == 1 and device["captures"] == 1 and device["graph_launches"] == 5, device
P
expect 0 replay c.tape --steps 3 --device cuda; answered '1 of them launched ahead'; [ "$(grep -cE '^step [123]: loss' out)" = 3 ] || fail 'no three lines'
expect 0 replay c.tape --steps 3 --device cuda --check-eager
expect 0 replay c.tape --steps 3 --device cuda --cuda-graphs off; answered 'CUDA graphs are off'; answered '0 of them launched ahead'
expect 0 replay c.tape --steps 3 --device cuda --budget 60%; quiet
expect 0 bench c.tape --device cuda --warmup 2 --min-time 0.01 --json; quiet

# Inputs that change from step to step go to the step that they are given for, though they are read while the step before runs.
number_of() { printf "\\x$(printf %02x "$1")\\x00\\x00\\x00"; }  # an i32
mkdir good short zero
for i in 1 2 3 4 5; do number_of $((i * i)) > good/$i.raw; done
printf 'graph g(%%x: i32[1]) state(%%t: i32[1]) {\n  %%s: i32[1] = add(%%x, %%t)\n  %%d: i32[1] = div(%%s, %%x)\n  %%m: i32[] = sum(%%s) {axes=[0], keepdims=false}\n  return %%d, %%m\n  update %%t = %%s\n}\n' > g.graph
for device in cpu cuda; do
  expect 0 replay g.graph --input x=good --device $device -o d=$device.npy; quiet; answered '5 steps'
done
cmp -s cpu.npy cuda.npy || fail 'five steps with five inputs differ from those of the CPU'
expect 0 replay g.graph --input x=good --device cuda --json; [ "$(number steps_ahead)" = 3 ] || fail "$(number steps_ahead) steps were launched ahead, not 3"

# An input that cannot be read is an error behind the results of the steps before it.
cp good/* short; printf x > short/3.raw
expect 3 replay g.graph --input x=short --device cuda; said 'short/3.raw: 1 bytes, but i32[1] takes 4'
answered 'm 1'; answered 'm 5'; grep -q 'step 3' out && fail 'a step without its input was told'

# A fault of a step that was launched names its node, with the exit code of a failed run, and nothing is written.
cp good/* zero; number_of 0 > zero/4.raw
expect 5 replay g.graph --input x=zero --device cuda -o d=y.npy; said 'integer division by zero'; said '[div]'; absent y.npy
finish
