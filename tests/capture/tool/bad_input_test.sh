#!/usr/bin/env bash
# Every mistake is a clear line on stderr and the documented exit code; nothing half-written stays.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

# usage: 2
expect 2; expect 2 frobnicate; expect 2 record; expect 2 plan; expect 2 plan --no-such-option x
expect 2 frobnicate; said "there is no command 'frobnicate'"; expect 2 plna x.tape; said "did you mean 'plan'?"; said "tapedeck --help"
expect 2 recrod mlp -o x.tape; said "there is no command 'recrod': did you mean 'record'?"; expect 2 --bugdet; said "tapedeck has no option --bugdet"
expect 2 help plna; said "did you mean 'plan'?"; expect 0 help plan; cp out help; expect 0 plan --help; cmp -s out help || fail "help plan is not plan --help"
expect 0 help; cp out help; expect 0 --help; cmp -s out help || fail "help is not --help"
expect 2 plan --bugdet 5 x.tape; said "plan has no option --bugdet: did you mean '--budget'?"; said "tapedeck plan --help"
expect 2 plan; said "FILE is missing; write: tapedeck plan [OPTIONS] FILE"; expect 2 record mlp; said "-o FILE.tape"; expect 2 opt --pass; said "--pass needs a value"
expect 2 record nosuch -o x.tape; said "unknown model 'nosuch'"; said "cnn"; absent x.tape
expect 2 record resnet81 -o x.tape; said "unknown model 'resnet81': did you mean 'resnet18'? The models are: "
expect 2 record mlp --batch 0 -o x.tape; said "--batch: 0 is not in the range 1 to"; expect 2 record mlp --batch many -o x.tape; said "not a whole number"; expect 2 record mlp --optimizer foo -o x.tape
expect 0 record mlp --batch 4 -o m.tape
expect 2 plan m.tape --budget lots; said "'lots' is not a size"
expect 2 plan m.tape --budget -5; expect 2 plan m.tape --budget 5PB; expect 2 plan m.tape --strategy best; expect 2 plan m.tape --strategy gredy; said "unknown strategy 'gredy': did you mean 'greedy'?"; expect 2 plan m.tape --align 48
said "power of two"
expect 2 replay m.tape --steps 0; expect 2 replay m.tape --input nosuch=zeros; said "has no input 'nosuch'; its inputs are: "; said "x, y"
expect 2 replay m.tape --input x; expect 2 replay m.tape --input x=sometimes
expect 2 replay m.tape --device tpu
expect 0 --help; answered "Exit codes"; expect 0 plan --help; expect 0 --version

# files: 3
expect 3 info missing.tape; said missing.tape
expect 3 info n.tape; said "n.tape: cannot read: No such file or directory: did you mean 'm.tape'?"
expect 3 info ./nowhere/n.tape; grep -q 'did you mean' err && fail "a file of another folder is suggested"
expect 3 plan lenet; said "lenet is a model: record it first, by tapedeck record lenet -o lenet.tape"
expect 3 bench lenett; said "lenett: there is no such file and no such model: did you mean 'lenet'?"
expect 3 replay n.tape --dims batch=2; said "did you mean 'm.tape'?"
expect 3 plan missing.graph; said missing.graph
expect 3 replay m.tape --input x=@missing.npy; said missing.npy
# files of values, weights and code: any file of the folder may have been meant
cp m.tape w.safetensors; echo > x.npy; echo > s.cpp
expect 3 replay m.tape --input x=x.nyp; said "x.nyp: cannot read: No such file or directory: did you mean 'x.npy'?"
expect 3 replay m.tape --weights w.safetensor; said "did you mean 'w.safetensors'?"
expect 3 record mlp --weights w.safetensor -o z.tape; said "did you mean 'w.safetensors'?"; absent z.tape
expect 3 run s.cp; said "did you mean 's.cpp'?"
expect 2 plan m.tape --explain choises; said "did you mean 'choices'?"
rm w.safetensors x.npy s.cpp
printf 'PK\003\004 and more bytes' > zip.safetensors; expect 3 info zip.safetensors; said "not a tape, but a zip archive"
printf '\223NUMPY and more bytes' > n.tape; expect 3 info n.tape; said "not a tape, but a .npy array"; rm zip.safetensors n.tape
printf '#include <tapedeck/tapedeck.h>\n' > code.tape; expect 3 info code.tape; said "not a tape, but text, and not that of a graph"; rm code.tape
head -c 100 m.tape > short.tape; expect 3 info short.tape; said short.tape
# a file that is cut off: where it ends, and where it should
size=$(stat -c %s m.tape)
for n in 100 $((size / 2)) $((size - 1)); do
  head -c "$n" m.tape > cut.tape
  for command in info verify plan replay print 'export dot' 'compare m.tape'; do
    expect 3 $command cut.tape; said 'cut.tape: '; said 'it is cut off'; said "$n"
  done
done
expect 3 info cut.tape; said "it is cut off at byte $((size - 1)), and its header describes $size bytes"
printf 'graph g(%%x: f32[4]) {\n  %%y: f32[4] = exp(%%x)\n' > cut.graph; expect 3 plan cut.graph; said 'cut.graph:3:1: error'; said 'got the end of the text'
: > empty.tape; expect 3 verify empty.tape
head -c 4096 /dev/urandom > noise.tape; expect 3 info noise.tape
cp m.tape flipped.tape; printf '\xff' | dd of=flipped.tape bs=1 seek=200000 conv=notrunc status=none
expect 3 verify flipped.tape; said flipped.tape; expect 3 replay flipped.tape
cp m.tape header.tape; printf '\x7f\xff\xff\xff\xff\xff\xff\x7f' | dd of=header.tape bs=1 conv=notrunc status=none; expect 3 info header.tape
echo 'not a tensor' > foreign.npy; expect 3 replay m.tape --input x=@foreign.npy
expect 3 replay m.tape --weights missing.safetensors
expect 3 plan . ; expect 3 record mlp -o /no/such/folder/x.tape

# graphs: 3, with line and column
printf 'graph g(%%x: f32[2,3]) {\n  %%y: f32[2,3] = frob(%%x)\n  return %%y\n}\n' > bad.graph
expect 3 plan bad.graph; said "bad.graph:2:"; said "frob"
printf 'graph g(%%x: f32[2,3]) {\n  %%y: f32[3,2] = relu(%%x)\n  return %%y\n}\n' > bad.graph
expect 3 verify bad.graph; said "bad.graph:2:"
printf 'graph g(%%x: f32[99999999999999]) {\n return %%x\n}\n' > bad.graph
expect 3 plan bad.graph; said "bad.graph:1:"

# budgets: 4, the JSON all the same, nothing written
expect 4 plan m.tape --budget 1KiB -o none.tape --json; answered '"feasible": false'; answered '"peak_bytes"'; said "floor"; said "%"; absent none.tape
floor=$(number floor_bytes)
expect 0 plan m.tape --budget "$floor" --json; expect 4 plan m.tape --budget $((floor - 1)) --json
[ "$(number peak_bytes)" = "$floor" ] || fail "the best found is $(number peak_bytes), not the floor $floor"

# a full disk: 3, the old file as it was
cp m.tape kept.tape
(ulimit -f 64; trap '' XFSZ; "$tool" record mlp --batch 8 -o kept.tape > out 2> err); code=$?
[ $code = 3 ] || fail "a full disk exits $code: $(cat err)"
cmp -s m.tape kept.tape || fail "a full disk changed the old file"
[ -z "$(ls -A | grep -F .tapedeck-)" ] || fail "debris: $(ls -A)"

# devices: 6
if "$tool" devices | grep -q 'cuda *absent'; then
  expect 6 replay m.tape --device cuda
  [ "$(wc -l < err)" = 1 ] || fail "more than one line: $(cat err)"
fi
# execution: 5
printf 'graph g(%%l: f32[2,3], %%y: i32[2]) {\n  %%k: i32[2] = full() {shape=[2], dtype=i32, value=7.0}\n  %%e: f32[] = cross_entropy(%%l, %%k)\n  return %%e\n}\n' > fault.graph
expect 5 replay fault.graph; said cross_entropy
finish
