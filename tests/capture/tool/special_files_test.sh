#!/usr/bin/env bash
# Files that have no size or no end: devices and pipes are refused with their name where a size is needed, and text is bounded.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph ./pipe*

expect 0 record mlp --batch 4 -o m.tape
for command in info print verify plan replay; do
  expect 3 $command /dev/zero; said "/dev/zero: cannot read: it is a device"
  expect 3 $command .; said "Is a directory"
done
mkfifo pipe
expect 3 info pipe; said "pipe: cannot read: it is a pipe"  # at once, although nobody writes to it
expect 3 replay m.tape --input x=@/dev/zero; said "/dev/zero: cannot read: it is a device"
expect 3 replay m.tape --weights pipe; said "pipe: cannot read: it is a pipe"

# Text may come through a pipe.
expect 3 offsets /dev/zero; said "/dev/zero: cannot read: it is a device"
"$tool" offsets - < /dev/zero > out 2> err; code=$?
[ $code = 3 ] || fail "offsets - < /dev/zero exited $code"
said "stdin: cannot read: it is a device"
printf 'id,lower,upper,size\n1,0,2,64\n' | "$tool" offsets - --json > out 2> err || fail "offsets of a pipe: $(cat err)"
[ "$(number peak)" = 64 ] || fail "$(cat out)"
ln -s /dev/zero zero.graph
expect 3 verify zero.graph; said "zero.graph: cannot read: it is a device"
mkfifo pipe.graph
printf 'graph g(%%x: f32[2]) {\n  %%y: f32[2] = relu(%%x)\n  return %%y\n}\n' > pipe.graph &
expect 0 verify pipe.graph
truncate -s 300M long.graph
expect 3 verify long.graph; said "long.graph: cannot read: it is longer than 268435456 bytes, the most for a text"
rm -f long.graph
finish
