#!/usr/bin/env bash
# info counts the FLOPs of loops and branches: a scan's region for each pass, a while's for one pass, the dearer branch of a cond.
# The numbers are by hand: a product of 2 x 2 matrices has 4 elements of 2 products and 2 sums: 16 FLOPs.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.graph

# flops GRAPH STEP PASS: what info --json says.
flops() {
  expect 0 info "$1" --json; quiet
  [ "$(sed -nE 's/^  "flops": ([0-9]+)(\.0)?,?$/\1/p' out)" = "$2" ] || fail "$1: $(grep -m1 '"flops"' out), not $2"
  [ "$(sed -nE 's/^  "flops_per_pass": ([0-9]+)(\.0)?,?$/\1/p' out)" = "$3" ] || fail "$1: $(grep flops_per_pass out), not $3"
}

# One product outside, and five passes of two products.
cat > scan.graph << 'G'
graph scanned(%x: f32[2,2], %s: f32[5,2,2]) {
  %a: f32[2,2] = matmul(%x, %x)
  %y: f32[2,2] = scan(%a, %s) {carried=1, scanned=1} (%i: i64[], %c: f32[2,2], %t: f32[2,2]) {
    %d: f32[2,2] = matmul(%c, %t)
    %e: f32[2,2] = matmul(%d, %t)
    return %e
  }
  return %y
}
G
flops scan.graph $((16 + 5 * 32)) 0
expect 0 info scan.graph; answered 'flops: 176 FLOP a step: forward 176 FLOP'; answered 'scan '; grep -q 'until a condition' out && fail "a scan has a number of passes: $(cat out)"

# Its gradient, which runs the loop again: the pass, and the gradient of the pass, which has one product for each of its two.
sed 's/scanned=1}/scanned=1, checkpoint=-1}/; s/  return %y/  %z: f32[] = sum(%y) {axes=[0,1]}\n  return %z/' scan.graph > sum.graph
expect 0 gradient sum.graph --of z --wrt x -o gradient.graph
flops gradient.graph $((16 + 5 * 32 + 5 * 64 + 2 * 16)) 0

# The scan stands in a while: the condition counts as well, and the passes of the while are not known.
cat > while.graph << 'G'
graph looped(%x: f32[2,2], %s: f32[5,2,2], %go: bool[]) {
  %a: f32[2,2] = matmul(%x, %x)
  %n: i64[], %y: f32[2,2] = while(%a, %s, %go) {carried=1} (%i: i64[], %c: f32[2,2], %q: f32[5,2,2], %g: bool[]) {
    return %g
  } (%i: i64[], %c: f32[2,2], %q: f32[5,2,2], %g: bool[]) {
    %y: f32[2,2] = scan(%c, %q) {carried=1, scanned=1} (%j: i64[], %e: f32[2,2], %t: f32[2,2]) {
      %d: f32[2,2] = matmul(%e, %t)
      return %d
    }
    return %y
  }
  return %y
}
G
flops while.graph 16 80
expect 0 info while.graph; answered 'flops: 16 FLOP a step: forward 16 FLOP; and 80 FLOP in each pass of the loops that run until a condition fails'

# The dearer branch.
cat > cond.graph << 'G'
graph branched(%p: bool[], %x: f32[2,2]) {
  %y: f32[2,2] = cond(%p, %x) (%a: f32[2,2]) {
    %b: f32[2,2] = matmul(%a, %a)
    return %b
  } (%a: f32[2,2]) {
    %b: f32[2,2] = matmul(%a, %a)
    %c: f32[2,2] = matmul(%b, %a)
    %d: f32[2,2] = matmul(%c, %a)
    return %d
  }
  return %y
}
G
flops cond.graph 48 0

finish
