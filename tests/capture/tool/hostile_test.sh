#!/usr/bin/env bash
# Files that crashed or deceived the tool once. Each must exit with the documented code and a message that names the place.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

loop_grad_with_result() {  # N: the pass makes f32[N] of a carried f32[]
  cat << END
graph evil(%c: f32[], %dc: f32[]) {
  %n: i64[] = constant() {value=[3]}
  %d: f32[] = loop_grad(%n, %c, %dc) {carried=1, trips=8, needs="1"} (%i: i64[], %c0: f32[]) {
    %wide: f32[$1] = full() {shape=[$1], dtype=f32, value=1.0}
    %big: f32[$1] = add(%wide, %c0)
    return %big
  } (%i: i64[], %c0: f32[], %d0: f32[]) {
    %d1: f32[] = neg(%d0)
    return %d1
  }
  return %d
}
END
}

# the result of a pass is larger than the carried value that it becomes: 3
for n in 4096 1048576; do
  loop_grad_with_result $n > pass.graph
  for command in verify plan replay; do
    expect 3 $command pass.graph; said "pass.graph:3:"; said "[loop_grad] a pass makes f32[$n] of carried value 0, which is f32[]"
  done
done

# 2^18 operands whose sizes add up to 2^64 + 16: 3
{
  printf 'graph o(%%s: u8[16]) {\n  %%c: u8[1] = constant() {value=[65]}\n'
  printf '  %%x: u8[70368744177664] = broadcast_to(%%c) {shape=[70368744177664]}\n  %%y: u8[16] = concat('
  awk 'BEGIN { for (i = 0; i < 262144; ++i) printf "%%x," }'
  printf '%%s) {axis=0}\n  return %%y\n}\n'
} > wide.graph
for command in verify plan replay; do
  expect 3 $command wide.graph; said "wide.graph:4:"; said "[concat] the result is too large"
done

# a constant without data inside a region: 5
cat > abstract.graph << 'END'
graph g(%x: f32[2]) {
  %y: f32[2] = dynamic(%x) (%a: f32[2]) {
    %c: f32[2] = constant() {abstract=true}
    %z: f32[2] = add(%a, %c)
    return %z
  }
  return %y
}
END
expect 5 replay abstract.graph; said "its data is not known"; said "%c"

# The inputs kept aside, where they and python3 are at hand.
kept=$(dirname "${BASH_SOURCE[0]}")/../../../../shared/hostile
if [ ! -d "$kept" ] || ! command -v python3 > /dev/null; then
  echo "skipped the inputs of $kept: they, or python3, are not here"
  finish
fi
expect 3 replay "$kept/s1a_loop_grad_heap_write.graph"; said "s1a_loop_grad_heap_write.graph:3:"
expect 3 plan "$kept/s1a_plan_arena.graph" -o arena.tape; said "s1a_plan_arena.graph:3:"; absent arena.tape
python3 "$kept/s2_concat_overflow.py" > s2.graph
expect 3 verify s2.graph; expect 3 replay s2.graph; said "s2.graph:4:"
expect 5 replay "$kept/s3_dynamic_abstract.graph"; said "its data is not known"
python3 "$kept/s4_region_chain.py" > s4.graph
expect 0 plan s4.graph
expect 0 plan "$kept/s9_takeover.graph" -o s9.tape
python3 "$kept/s9_forge.py" s9.tape s9_forged.tape > /dev/null || fail "the plan could not be forged"
expect 3 verify s9_forged.tape; said "%v"; said "bytes"
expect 3 replay s9_forged.tape
finish
