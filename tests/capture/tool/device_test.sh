#!/usr/bin/env bash
# Devices: a GPU that is not there is one line and exit 6, before any file is read; which nodes of a plan a GPU would run.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

expect 0 devices; quiet; answered 'cpu '; answered 'cuda '
expect 0 devices --json; quiet; answered '"devices"'; answered '"libraries"'
! command -v python3 > /dev/null || python3 -m json.tool < out > /dev/null || fail "devices --json is no JSON: $(head -c 300 out)"

# refused ARGUMENTS...: without a GPU it is exit 6 and one line with the reason, nothing on stdout.
reason=$("$tool" devices | sed -nE 's/^cuda +absent +//p')
refused() {
  expect 6 "$@"; said "$reason"
  [ "$(wc -l < err)" = 1 ] || fail "tapedeck $* said more than one line: $(head -c 300 err)"
  [ ! -s out ] || fail "tapedeck $* wrote to stdout: $(head -c 300 out)"
}
expect 0 record mlp --batch 2 -o mlp.tape
echo 'no tape' > broken.tape
if [ -n "$reason" ]; then
  for device in cuda cuda:1; do
    # The device is asked for before a file is: a missing file and a broken one make no difference.
    for file in mlp.tape missing.tape broken.tape; do
      refused replay $file --device $device
      refused bench $file --device $device --cuda-graphs require
    done
    refused bench mlp --small --device $device
    expect 6 bench mlp --small --device $device --json; answered '"code": 6'; answered "$reason"
    refused replay mlp.tape --steps 3 --device $device --budget 80% --quiet
  done
  refused replay mlp.tape --device cuda --cuda-graphs off -o written.tape; absent written.tape
fi
# A plan for a GPU needs none.
expect 0 plan mlp.tape --device cuda; answered arena
expect 3 plan missing.tape --device cuda; said missing.tape
expect 3 plan broken.tape --device cuda

# wrong FLAG VALUE HINT: the same answer with a GPU and without, for a file that is there and for one that is not.
wrong() {
  for line in "replay mlp.tape" "bench missing.tape"; do
    expect 2 $line "$1" "$2"; said "'$2'"; said "$3"
    [ ! -s out ] || fail "tapedeck $line $1 $2 wrote to stdout: $(head -c 300 out)"
  done
}
for name in tpu cuda:x cuda: cuda:-1 cuda:1x cuda1 CUDA cud cuda:99999999999 ''; do
  wrong --device "$name" "(devices: cpu, cuda, cuda:1)"
done
wrong --cuda-graphs maybe "is not one of auto, off, require"
for name in tpu cuda:x; do
  expect 2 plan mlp.tape --device $name; said "no device '$name' (devices: cpu, cuda, cuda:1)"
done
expect 2 replay mlp.tape --device; said "--device needs a value"
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
