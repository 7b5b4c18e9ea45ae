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
expect 0 plan loop.graph --device cuda:1 --explain segments; answered "on cuda:1: 1 CUDA graph a step, of 1 kernel"
expect 2 plan loop.graph --device cuda:x; said "no device 'cuda:x'"

# a budget of a plan for a device holds for all memory there, scratch included, and the file keeps it
# on_device: the bytes in all of the last plan.
on_device() { sed -nE 's/^ +on cuda +([^(]*\()?([0-9,]+) bytes\)?, with scratch$/\2/p' out | tr -d ,; }
expect 0 record mlp --batch 8 -o mlp.tape
expect 0 plan mlp.tape --align 256 --json; peak=$(number peak_bytes)
expect 0 plan mlp.tape --device cuda; all=$(on_device)
[ -n "$all" ] || fail "no bytes on the device: $(cat out)"
[ "$all" -gt "$peak" ] || fail "$all bytes on the device are not more than the peak of $peak"
expect 4 plan mlp.tape --device cuda --budget 2000; [ -z "$(on_device)" ] || fail "a plan that does not fit is on the device"
expect 0 plan mlp.tape --device cuda --budget "$all" -o fits.tape
[ "$(on_device)" -le "$all" ] || fail "$(on_device) bytes on the device in a budget of $all"
expect 0 plan fits.tape --json; [ "$(number budget_bytes)" = "$all" ] || fail "the file has another budget: $(head -c 300 out)"
expect 0 plan mlp.tape --device cuda --budget "$all" --explain wishes; answered budget
expect 0 replay fits.tape
# one byte less is enough for the peak, and not for what the device takes: this model has nothing to compute again
expect 0 plan mlp.tape --budget "$((all - 1))"
expect 4 plan mlp.tape --device cuda --budget "$((all - 1))" -o less.tape; absent less.tape
finish
