#!/usr/bin/env bash
# tapedeck opt, print --after and reduce: text and .tape, aliases, suggestions, exit codes.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

cat > f.graph <<'G'
graph f(%x: f32[4]) state(%w: f32[4]) {
  %one: f32[] = full() {shape=[], dtype=f32, value=1.0}
  %a: f32[4] = exp(%x)
  %b: f32[4] = exp(%x)
  %c: f32[4] = add(%a, %b)
  %d: f32[4] = mul(%c, %one)
  %dead: f32[4] = neg(%d)
  %l: f32[4] = log(%a)
  return %d, %l
  update %w = %c
}
G

# opt: passes by name and alias, in order; what was won on stderr
expect 0 opt --list; answered "dead_code, dce"; answered "constant_folding"
expect 0 opt --list --json; answered '"schema": "tapedeck.passes/1"'; answered '"name": "cse"'
expect 0 opt f.graph --pass=cse,dce; answered "add(%a, %a)"; said "dead_code"; said "nodes"
grep -q 'neg' out && fail "dead code stayed"
grep -q 'mul' out || fail "a pass ran that was not asked for"
cp out g.graph; expect 0 verify g.graph
expect 0 opt f.graph; grep -q 'mul' out && fail "x * 1 stayed"; answered "log"
expect 0 opt f.graph --fast-math; grep -q 'log' out && fail "log(exp(x)) stayed"
expect 0 opt f.graph --pass cse -o h.graph --json; answered '"schema": "tapedeck.opt/1"'; answered '"nodes_before": 7'; expect 0 verify h.graph
expect 2 opt f.graph --pass=csee; said "unknown pass 'csee': did you mean 'cse'?"
expect 2 opt f.graph --pass=place_devices; said "needs a function"
expect 2 opt; said "FILE"
expect 3 opt missing.graph; said missing.graph
expect 0 record mlp --batch 4 -o m.tape
expect 0 opt m.tape --pass=cse,dce,fold,algebra,views,redundant -o n.tape; expect 0 verify n.tape; expect 0 replay n.tape --steps 1 --check-eager
TAPEDECK_DISABLE_PASSES=cse expect 0 opt f.graph --pass=cse; said "left out"
TAPEDECK_DISABLE_PASSES=css expect 2 opt f.graph --pass=cse; said "did you mean 'cse'?"

# --level: how much the passes may change; results stay the same
tail -n +2 f.graph > f.body
expect 0 opt f.graph --level 0; answered 'neg(%d)'; [[ $(grep -c ' = ' out) == $(grep -c ' = ' f.body) ]] || fail "level 0 changed the graph"
expect 0 opt f.graph --level 1; grep -q 'neg' out && fail "dead code stayed"; answered 'mul(%c, %one)'; answered '%b: f32[4] = exp(%x)'
expect 0 opt f.graph --level 2; cp out two.graph; expect 0 opt f.graph; cmp -s out two.graph || fail "2 is not the default"
expect 2 opt f.graph --level 4; said "--level"
expect 2 opt f.graph --level 1 --pass cse; said "exclude each other"
for level in 0 1 2 3; do expect 0 plan f.graph --level $level -o l$level.tape --json; declare "nodes$level=$(number nodes)"; done
[[ $nodes0 -gt $nodes1 && $nodes1 -gt $nodes2 ]] || fail "the nodes do not fall: $nodes0, $nodes1, $nodes2"
for level in 0 1 2 3; do expect 0 verify l$level.tape; expect 0 replay l$level.tape --steps 2 --check-eager; done

# --level 3: a chain of elementwise nodes becomes one node, where results are large enough
sed 's/\[4\]/[400]/g' f.graph > wide.graph
expect 0 opt wide.graph --pass=fuse; answered "fused("
expect 0 plan wide.graph --level 3 -o wide.tape; answered "fused"; expect 0 verify wide.tape
expect 0 print wide.tape --planned; answered "= fused("; expect 0 replay wide.tape --steps 2 --check-eager
expect 0 plan f.graph -o l.tape; expect 0 compare l.tape l2.tape

# print --after: the graph on its way to the planner
expect 0 print f.graph --after cse; answered "add(%a, %a)"
expect 0 print f.graph --after insert_copies; grep -q 'dead' out && fail "dead code stayed"
expect 2 print f.graph --after place_devices; said "the pipeline does not run"; expect 2 print f.graph --after csee; said "did you mean"
expect 0 print f.graph --planned; answered "fuse="

# reduce: shrinks while the command fails as it did
cat > check.sh <<'C'
grep -q 'sigmoid' "$1" && exit 7
exit 0
C
cat > big.graph <<'G'
graph big(%x: f32[4,6], %y: f32[4,6]) state(%w: f32[6,6]) {
  %a: f32[4,6] = matmul(%x, %w)
  %b: f32[4,6] = add(%a, %y)
  %c: f32[4,6] = sigmoid(%b)
  %d: f32[4,6] = tanh(%c)
  %e: f32[6] = sum(%d) {axes=[0]}
  %f: f32[6,6] = neg(%w)
  return %e, %a
  update %w = %f
}
G
expect 0 reduce big.graph --check "sh ./check.sh {}"; said "6 -> 1 nodes"; answered "sigmoid"; answered "f32[1,1]"
[ "$(grep -c ' = ' out)" = 1 ] || fail "more than one node is left: $(cat out)"
expect 0 reduce big.graph --check "sh ./check.sh" --keep-sizes -o small.graph --json; answered '"nodes_after": 1'; expect 0 verify small.graph
grep -q '4,6' small.graph || fail "sizes were not kept"
expect 0 reduce big.graph --check "grep -q matmul {}" --expect-exit 0; answered "matmul"
expect 2 reduce big.graph --check "true"; said "nothing fails"
expect 2 reduce big.graph --check "/no/such/command"; said "no such command"
expect 2 reduce big.graph
# a planner's answer as the check: the exit code of an infeasible budget
expect 0 reduce m.tape --check "$tool plan {} --budget 1KiB" --max-checks 40 -o r.tape; expect 0 verify r.tape
finish
