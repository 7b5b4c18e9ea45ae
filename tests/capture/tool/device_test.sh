#!/usr/bin/env bash
# Devices: a GPU that is not there is one line and exit 6, before any file is read; which nodes of a plan a GPU would run.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

expect 0 devices; answered cpu; answered cuda
expect 0 devices --json; answered '"devices"'; answered '"libraries"'
if "$tool" devices | grep -q 'cuda *absent'; then
  for command in replay bench; do
    expect 6 $command missing.tape --device cuda
    [ "$(wc -l < err)" = 1 ] || fail "more than one line: $(cat err)"
    expect 6 $command missing.tape --device cuda:1 --cuda-graphs require
  done
fi
expect 2 replay missing.tape --device cuda:x; said "no device 'cuda:x'"
expect 2 replay missing.tape --cuda-graphs off; said "--cuda-graphs off needs --device cuda"
expect 2 bench mlp --small --device cuda --roofline; said "exclude each other"

# the host runs loops, and says so
cat > loop.graph <<'END'
graph loop(%x: f32[3,2], %h: f32[2]) {
  %y: f32[2] = scan(%h, %x) {carried=1, scanned=1} (%i: i64[], %c: f32[2], %s: f32[2]) {
    %n: f32[2] = add(%c, %s)
    return %n
  }
  %z: f32[2] = add(%y, %h)
  return %z
}
END
expect 0 plan loop.graph --device cuda --explain segments
answered "on cuda: 1 CUDA graph a step, of 1 kernel"; answered "on the host    node 0, "; answered "the host runs the passes of loops"
expect 0 plan loop.graph --explain segments
grep -q "on the host" out && fail "a plan for the CPU speaks of the host: $(cat out)"
finish
