#!/usr/bin/env bash
# tapedeck plan --threads --explain: how segments were cut, and plans for several threads through file and replay.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

cat > two.graph <<'G'
graph two(%x: u8[64], %held: u8[4096]) {
  %a: u8[64] = opaque(%x) {us=100.0}
  %b: u8[64] = opaque(%a) {us=100.0}
  %c: u8[64] = opaque(%x) {us=100.0}
  %d: u8[64] = opaque(%c) {us=100.0}
  %e: u8[64] = opaque(%b, %d, %held) {us=1.0}
  return %e
}
G
expect 0 plan two.graph --explain segments; quiet
answered "rule: dispatch 0.15 us is to be at most 2 % of a segment, so it costs 7.5 us or more, and 50 us or less"
answered "cut: in the order of nodes"
expect 0 plan two.graph --threads 2 --explain=segments; quiet
answered "segments for 2 threads, costs: estimate"
answered "critical path 201.0 us"
# The same words as JSON: two branches of 200 us side by side.
expect 0 plan two.graph --threads 2 --explain segments --json; quiet
for key in segment_rule segment_list critical_path_us makespan_us dispatch_us successors intra_op; do answered "\"$key\""; done
makespan=$(sed -nE 's/^ *"makespan_us": ([0-9]+).*/\1/p' out)
[ "$makespan" -ge 201 ] && [ "$makespan" -le 260 ] || fail "two branches of 200 us take $makespan us"
# Bare --explain lists choices, also before the file's name.
expect 0 plan --explain two.graph; answered "nothing is recomputed"
expect 0 plan two.graph --explain choices; answered "nothing is recomputed"
expect 2 plan two.graph --explain=nonsense
expect 2 plan two.graph --threads 0
expect 2 plan two.graph --segment-us -1
# Every node by itself; no segment of two phases.
expect 0 plan two.graph --segment-us 0 --json
[ "$(number segments)" = 5 ] || fail "$(number segments) segments of single nodes"

# A plan for two threads is in the file, and runs on any number.
expect 0 record cnn --batch 2 -o c.tape
expect 0 plan c.tape --threads 2 --split-phases -o p.tape; quiet
expect 0 verify p.tape
for threads in 1 2 3; do expect 0 replay p.tape --steps 2 --threads $threads --check-eager; answered "equal to eager yes"; done
finish
