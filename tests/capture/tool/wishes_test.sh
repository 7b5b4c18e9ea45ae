#!/usr/bin/env bash
# plan --keep and --recompute: values that are never computed again, and values that are not kept for backward.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

expect 0 record cnn --batch 4 -o c.tape
expect 0 plan c.tape --budget 60% --json; [ "$(number recomputed_nodes)" -gt 0 ] || fail "nothing is recomputed at 60%"
expect 0 plan c.tape --strategy none --json; peak=$(number peak_bytes)
expect 4 plan c.tape --keep '*' --budget $((peak - 1)) --json; [ "$(number recomputed_nodes)" = 0 ] || fail "values to keep are recomputed"
[ "$(number floor_bytes)" = "$peak" ] || fail "the floor is $(number floor_bytes), not $peak"
expect 0 plan c.tape --keep module:conv1 --keep stem.add --budget 70%; quiet

# Values to compute again are, without a budget too; the replay has the bits of eager code.
expect 0 plan c.tape --recompute 'op:relu' --json -o r.tape; quiet; [ "$(number recomputed_nodes)" -gt 10 ] || fail "$(number recomputed_nodes) nodes are recomputed"
expect 0 replay r.tape --steps 2 --check-eager --json; answered '"equal_to_eager": true'
expect 0 replay c.tape --recompute op:relu --check-eager --json; answered '"equal_to_eager": true'; again=$(number planned_peak_bytes)
expect 0 replay r.tape --keep '*' --json; [ "$(number planned_peak_bytes)" != "$again" ] || fail "replay does not plan again"
expect 0 bench r.tape --recompute op:relu --min-time 0.01 --json; [ "$(number planned_peak_bytes)" = "$again" ] || fail "bench does not plan again"
expect 2 replay c.tape --keep nobody; said "no value has such a name"
# The last wish that names a value counts, in the order of the line.
expect 0 plan c.tape --recompute op:relu --keep=* --json; [ "$(number recomputed_nodes)" = 0 ] || fail "--keep is not the last word"
expect 0 plan c.tape --keep=* --recompute op:relu --keep op:add --json; [ "$(number recomputed_nodes)" -gt 10 ] || fail "--recompute is not the last word"
expect 0 plan c.tape --recompute relu.3 --explain choices; answered 'wished for by `--recompute relu.3`'

# What became of each wish, and what it costs.
expect 0 plan c.tape --recompute op:relu --keep relu.3 --recompute x; answered "--keep relu.3"; answered "1 value, 1 honoured"; answered "left to a later wish"; answered "%x: it is an input"
grep -q costs.*peak out && fail "costs are shown unasked"
expect 0 plan c.tape --recompute op:relu --explain wishes; answered "bytes of peak"
expect 0 plan c.tape --recompute x --json; answered '"why": "it is an input"'; grep -q '"cost"' out && fail "costs are in the JSON unasked"
expect 0 plan c.tape --recompute x --json --explain wishes; answered '"feasible_without": true'
expect 0 plan c.tape --recompute op:relu --explain memory; answered "in this table nothing is recomputed"
expect 0 plan c.tape --explain wishes; answered "no wish was stated"
expect 0 plan c.tape --json; grep -q wishes out && fail "there are wishes"

# Marks of the program: the notes [keep] and [recompute], which `note:` names. A wish of the line wins over them.
cat > m.graph <<'END'
graph m(%x: f32[1000]) {
  %a: f32[1000] = exp(%x)
  %b: f32[1000] = tanh(%a)        [recompute]
  %c: f32[1000] = sigmoid(%b)     [keep]
  %s: f32[] = sum(%c) {axes=[0]}
  %d: f32[1000] = mul(%s, %x)     [phase=backward]
  %e: f32[1000] = mul(%d, %c)     [phase=backward]
  %f: f32[1000] = mul(%e, %b)     [phase=backward]
  return %f
}
END
expect 0 plan m.graph --json; quiet; [ "$(number recomputed_nodes)" = 1 ] || fail "the mark recomputes $(number recomputed_nodes) nodes"
expect 0 plan m.graph --explain choices; answered 'wished for by `[recompute] in the program`'; answered "[keep] in the program"; answered "[recompute] in the program   1 value, 1 honoured"
expect 0 plan m.graph --keep note:recompute --json; [ "$(number recomputed_nodes)" = 0 ] || fail "--keep note:recompute does not win"
expect 0 plan m.graph --keep note:recompute --explain choices; answered "--keep note:recompute"; answered "left to a later wish"
expect 0 plan m.graph --recompute note:keep --json; [ "$(number recomputed_nodes)" = 2 ] || fail "--recompute note:keep does not win"
expect 0 plan m.graph --explain b; answered "the other choice, all others fixed: kept from its first run on"; answered "planned anew with --keep b: 0 nodes recomputed"
expect 0 plan m.graph --explain c; answered "planned anew with --recompute c: 2 nodes recomputed"
expect 0 print m.graph; answered "[recompute]"
expect 0 replay m.graph --check-eager --json; answered '"equal_to_eager": true'
expect 2 plan c.tape --keep note:keep; said "the program marks no node so"
expect 2 plan m.graph --keep note:kept; said "neither keep nor recompute"

expect 2 plan c.tape --keep conv1.conv2; said "--keep conv1.conv2: no value has such a name: did you mean 'conv1.conv2d'?"
expect 2 plan c.tape --keep trait:fast; said "there is no trait 'fast'"
expect 2 plan c.tape --keep modul:x; said "did you mean 'module'"
expect 2 plan c.tape --keep; said "--keep needs a value"
expect 0 plan --help; answered "trait:NAME"
finish
