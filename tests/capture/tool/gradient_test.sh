#!/usr/bin/env bash
# tapedeck gradient: the graph with its backward on stdout, which verify accepts; clear errors.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

cat > f.graph <<'G'
graph f(%x: f32[4,3], %y: f32[4,2], %seed: f32[]) state(%w: f32[3,2]) {
  %h: f32[4,2] = matmul(%x, %w)   [path="fc1"]
  %e: f32[4,2] = sub(%h, %y)
  %q: f32[4,2] = square(%e)
  %loss: f32[] = sum(%q) {axes=[0,1], keepdims=false}
  %best: i64[4] = argmax(%h) {axis=1}
  return %loss
}
G
expect 0 gradient f.graph --of %loss --wrt %w,%x; quiet
answered "grad.w="; answered "grad.x="; answered "phase=backward"; answered 'twin=%h'
cp out g.graph
expect 0 verify g.graph; answered "ok"
expect 0 print g.graph; cmp -s out g.graph || fail "the printed graph is not as it was"
expect 0 plan g.graph

# names without '%', several options, an output file, a head of one's own
expect 0 gradient f.graph --of loss --wrt w --wrt x -o h.graph; cmp -s h.graph g.graph || fail "names without % give something else"
expect 0 gradient f.graph --of h,loss --head %y --head seed --wrt w; answered "grad.w="
expect 0 gradient f.graph --of loss --wrt w --json; answered '"schema": "tapedeck.gradient/1"'; answered '"of": "w"'; answered '"nodes_before": 5'

# of a gradient: the gradients are values like others
expect 0 gradient g.graph --of grad.fc1.matmul --wrt w -o twice.graph; expect 0 verify twice.graph

# a .tape
expect 0 record mlp --batch 4 --abstract -o m.tape
expect 0 print m.tape
loss=$(sed -nE 's/^ *return ([a-z]+=)?%([^ ,]+).*/\2/p' out | head -1)
state=$(sed -nE 's/.*state\(%([^:]+):.*/\1/p' out | head -1)
expect 0 gradient m.tape --of "$loss" --wrt "$state" -o m.graph; expect 0 verify m.graph

# a value that depends on no value of --wrt
expect 2 gradient f.graph --of loss,best --wrt w; said 'the target %best'
expect 3 gradient f.graph --of y --wrt w; said 'the target %y: f32[4,2] depends on no value that the gradient is for'
expect 0 gradient f.graph --of loss,y --wrt w --allow-unreached; answered "grad.w="

# mistakes
expect 2 gradient f.graph --of loss; expect 2 gradient f.graph --wrt w
expect 2 gradient f.graph --of lass --wrt w; said "no value %lass: did you mean 'loss'?"
expect 2 gradient f.graph --of loss --wrt w,,x; said "empty name"
expect 2 gradient f.graph --of loss --wrt w --head seed,seed; said "2 --head for 1 --of"
expect 2 gradient f.graph --of loss --wrt w --head y; said "does not fit the target %loss: f32[]"
expect 2 gradient f.graph --of best --wrt w; said "%best: i64[4] is not of a floating type"
expect 3 gradient missing.graph --of loss --wrt w; said missing.graph
printf 'graph o(%%x: f32[4]) {\n  %%y: f32[4] = opaque(%%x)   [site="train.cpp:12"]\n  return %%y\n}\n' > o.graph
expect 3 gradient o.graph --of y --wrt x; said "'opaque' at train.cpp:12 has no gradient"; said "%y"
expect 3 gradient f.graph --of loss --wrt w -o /no/such/folder/x.graph
finish
