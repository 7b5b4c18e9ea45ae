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

expect 2 plan c.tape --keep conv1.conv2; said "--keep conv1.conv2: no value has such a name: did you mean 'conv1.conv2d'?"
expect 2 plan c.tape --keep trait:fast; said "there is no trait 'fast'"
expect 2 plan c.tape --keep modul:x; said "did you mean 'module'"
expect 2 plan c.tape --keep; said "--keep needs a value"
expect 0 plan --help; answered "trait:NAME"
finish
