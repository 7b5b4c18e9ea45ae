#!/usr/bin/env bash
# Graphs from anywhere: `opaque` costs exactly what it says, whatever its bytes.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.graph
# A chain with backward, by hand: a1..a4 of 100 bytes are kept for g4..g1. Peak of keep-all: 1 byte in, 1 out, and at g4's making
# a1..a4 and the first gradient.
cat > chain.graph <<'TEXT'
graph chain(%x: u8[1]) {
  %a1: u8[100] = opaque(%x) {us=10}
  %a2: u8[100] = opaque(%a1) {us=10}
  %a3: u8[100] = opaque(%a2) {us=10}
  %a4: u8[100] = opaque(%a3) {us=10}
  %g4: u8[10] = opaque(%a4) {us=10}
  %g3: u8[10] = opaque(%g4, %a3) {us=10}
  %g2: u8[10] = opaque(%g3, %a2) {us=10}
  %g1: u8[1] = opaque(%g2, %a1) {us=10}
  return %g1
}
TEXT
expect 0 plan chain.graph --strategy none --align 1 --json
[ "$(number peak_bytes)" = 412 ] || fail "peak $(number peak_bytes), by hand 412"
[ "$(number lower_bound_bytes)" = 412 ] || fail "bound $(number lower_bound_bytes), by hand 412"
answered '"recompute_cost_ratio": 1.0'
# Without a1 and a2 kept: 312 fits if one of them is computed again (10 of 80 us for a1: it needs only x).
expect 0 plan chain.graph --budget 312 --align 1 --json
[ "$(number peak_bytes)" -le 312 ] || fail "peak $(number peak_bytes)"
ratio=$(sed -nE 's/.*"recompute_cost_ratio": ([0-9.]+).*/\1/p' out)
[ "$ratio" = 1.125 ] || fail "cost x$ratio, by hand x1.125"
expect 0 replay chain.graph --check-eager --json; answered '"equal_to_eager": true'
finish
