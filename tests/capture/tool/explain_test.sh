#!/usr/bin/env bash
# plan --explain choices|VALUE: the decision log as a table, and one value with what the other choice would cost.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

cat > chain.graph <<'END'
graph chain(%x: u8[100]) {
  %a1: u8[100] = opaque(%x) {us=10.0}
  %a2: u8[100] = opaque(%a1) {us=10.0}
  %a3: u8[100] = opaque(%a2) {us=10.0}
  %a4: u8[100] = opaque(%a3) {us=10.0}
  %g4: u8[100] = opaque(%a4) {us=10.0} [phase=backward]
  %g3: u8[100] = opaque(%g4, %a3) {us=10.0} [phase=backward]
  %g2: u8[100] = opaque(%g3, %a2) {us=10.0} [phase=backward]
  %g1: u8[100] = opaque(%g2, %a1) {us=10.0} [phase=backward]
  return %g1
}
END

# The log stands below the choices: a line for each value, the values with the most bytes first.
expect 0 plan chain.graph --align 1 --explain choices; quiet; answered "nothing is recomputed"
answered "an input: the caller holds it"; answered "a result of the graph"; answered "this plan recomputes nothing"
expect 0 plan chain.graph --align 1 --recompute a1 --explain choices; answered 'made again: wished for by `--recompute a1`'
expect 0 plan chain.graph --align 1 --recompute a1 --explain choices --json; quiet
answered '"values": ['; answered '"choice": "recomputed"'; answered '"again_us": 10.0'
expect 0 record cnn --batch 4 -o c.tape
expect 0 plan c.tape --explain choices; answered "--json has all of them"

# A kept value: what it would cost to make it again, with all other choices fixed, and planned anew.
for words in "chain.graph --explain a1" "--explain a1 chain.graph" "chain.graph --explain=%a1"; do
  expect 0 plan --align 1 $words; quiet
  answered "%a1: u8[100], 100 bytes, kept"; answered "its maker runs 1 time, 10.0 us each"
  answered "read by node 7: %g1: u8[100] = opaque(%g2, %a1)"
  answered "the other choice, all others fixed: made again before node 7 (node 0)"; answered "cost 90.0 us (+10.0)"
  answered "planned anew with --recompute a1: 1 nodes recomputed"
done
# A value that is made again: what it would cost to keep it.
expect 0 plan chain.graph --align 1 --recompute a1 --explain a1; answered "recomputed"; answered "its maker runs 2 times"
answered "the other choice, all others fixed: kept from its first run on"; answered "cost 80.0 us (-10.0)"; answered "planned anew with --keep a1"
expect 0 plan chain.graph --align 1 --recompute a1 --explain a1 --json; quiet
answered '"other_choice": {'; answered '"planned_anew": {'; answered '"wish": "keep"'; answered '"more_us": -10.0'
# No choice, no price.
expect 0 plan chain.graph --explain x; answered "the other choice: there is none: an input: the caller holds it"

# Names that no value has.
expect 2 plan chain.graph --explain aa1; said "'aa1' is not one of choices, segments, peak, memory, wishes"; said "did you mean 'a1'?"
expect 2 plan chain.graph --explain=a5; said "no value of the plan has the name 'a5'"
# A budget that cannot be met: the best plan found is explained.
expect 4 plan chain.graph --align 1 --budget 300 --explain a1; answered "%a1: u8[100]"

finish
