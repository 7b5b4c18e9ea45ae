#!/usr/bin/env bash
# Ctrl-C in the middle of a long replay: it ends at once, says so, and leaves no half-written file.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.json
expect 0 record mlp --batch 64 -o m.tape
cp m.tape before.tape

# In the middle of its steps; on two threads and on one.
for threads in 1 2; do
  "$tool" replay m.tape --steps 100000000 --threads $threads --save s.tape --trace t.json > out 2> err & pid=$!
  interrupt $pid
  [ $code = 130 ] || fail "interrupted replay on $threads threads exited $code: $(head -c 300 err)"
  said interrupted
  absent s.tape; absent t.json
  cmp -s m.tape before.tape || fail "the file it read has changed"
done
finish
