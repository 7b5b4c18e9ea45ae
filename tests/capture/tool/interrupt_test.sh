#!/usr/bin/env bash
# Ctrl-C in the middle of a long replay: it ends at once, says so, and leaves no half-written file.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.json
expect 0 record mlp --batch 64 -o m.tape
cp m.tape before.tape

# Interrupted once the first line of its progress could have been there; on two threads and on one.
for threads in 1 2; do
  "$tool" replay m.tape --steps 100000000 --threads $threads --save s.tape --trace t.json > out 2> err & pid=$!
  sleep 1
  kill -INT $pid || fail "it had ended by itself: $(head -c 300 err)"
  start=$(date +%s)
  wait $pid; code=$?
  [ $code = 130 ] || fail "interrupted replay on $threads threads exited $code: $(head -c 300 err)"
  [ $(($(date +%s) - start)) -le 20 ] || fail "it took $(($(date +%s) - start)) s to stop"
  said interrupted
  absent s.tape; absent t.json
  cmp -s m.tape before.tape || fail "the file it read has changed"
done
finish
