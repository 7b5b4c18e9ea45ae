#!/usr/bin/env bash
# tapedeck plan --explain peak|memory, --picture and --csv: the memory of a plan in words, as a picture and as a table.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph ./*.svg ./*.png ./*.csv
# A sanitizer makes planning several times as slow, and gets smaller steps: most of the time of this test goes into plans of the U-Net.
small="unet --batch 1 --image 32 --width 4" explained="cnn unet"
sanitized && small="lenet --batch 1" explained="cnn"

cat > hand.graph <<'G'
graph hand(%x: u8[200]) {
  %a: u8[1000] = opaque(%x) {us=7.0} [site="train.cpp:3"]
  %big: u8[3000] = opaque(%x) {us=50.0} [site="train.cpp:5"]
  %c: u8[8] = opaque(%big) {us=1.0}
  %e: u8[8] = opaque(%a, %c) {us=1.0} [site="train.cpp:8"]
  return %e
}
G
expect 0 plan hand.graph --explain peak; quiet
for words in "the most bytes are alive at node" "%big" "train.cpp:5" "nodes that need the most by themselves" "lower bound"; do answered "$words"; done
expect 0 plan hand.graph --explain=peak --json; quiet
answered '"schema": "tapedeck.plan/1"'
for key in peak alive binding gap_bytes recompute advice; do answered "\"$key\""; done
expect 0 plan hand.graph --explain memory; quiet
for words in "by role" "by reason" "sharing rules" "order:" "in_place" "without windows" "none"; do answered "$words"; done
for words in "add_to: pieces" "each row is a plan of its own"; do answered "$words"; done
# The first row is the plan that is shown, on one thread and on several.
expect 0 record squeezenet --abstract --batch 1 --image 64 -o s.tape
for threads in 1 4; do
  expect 0 plan s.tape --threads $threads --explain memory; answered "earned: bound"; answered "workspace"
  peak=$(sed -nE 's/^peak ([0-9]+) bytes.*/\1/p' out); bound=$(sed -nE 's/^peak .*lower bound ([0-9]+) .*/\1/p' out)
  grep -qE "^  all +$bound +$peak( |\$)" out ||
    fail "the row of all rules on $threads threads: $(grep -E '^peak|^  all' out)"
done
answered "on 4 threads"; answered "placed tightly"

# Bytes kept apart for several threads: said, with what undoes it.
expect 0 record mlp --abstract --batch 1 -o m.tape
expect 0 plan m.tape --threads 4 --explain peak; answered "kept apart"; answered "--parallel-peak 1"
! grep -q 'is not known' out || fail "$(tail -3 out)"
expect 0 plan m.tape --threads 4 --json; apart=$(number peak_bytes)
expect 0 plan m.tape --threads 4 --parallel-peak 1 --json; [ "$(number peak_bytes)" -lt "$apart" ] || fail "tight: $(number peak_bytes)"
expect 0 plan m.tape --threads 4 --parallel-peak 1 --explain peak; ! grep -q 'kept apart' out || fail "$(tail -3 out)"
for command in plan replay bench; do
  expect 0 $command --help; answered "--parallel-peak"; answered "1.15"
  for wrong in 0.9 nan much; do expect 2 $command m.tape --parallel-peak=$wrong; done
done

expect 0 plan hand.graph --explain memory --json; quiet
for key in memory roles reasons sharing order unshared_bytes rules; do answered "\"$key\""; done

# A picture without the viewer, a table that says the same as the plan.
# shellcheck disable=SC2086
expect 0 record $small -o u.tape
expect 0 plan u.tape --picture u.svg --csv u.csv --json; quiet
arena=$(number arena_bytes)
head -c 4 u.svg | grep -qF '<svg' || fail "u.svg is no SVG"
tail -n 1 u.svg | grep -qF '</svg>' || fail "u.svg does not end"
grep -qF 'saved' u.svg || fail "u.svg has no legend"
head -1 u.csv | grep -qx 'id,lower,upper,size,offset,alignment,name,where,reason,node,phase,site,dtype,shape' || fail "header of u.csv: $(head -1 u.csv)"
top=$(awk -F, 'NR > 1 { end = $4 + $5; if (end > top) top = end } END { printf "%d", top }' u.csv)
[ "$top" = "$arena" ] || fail "the buffers of u.csv end at $top, the arena at $arena"

# In chunks: said in the summary, in words and as JSON, drawn, and offsets reads the table, which says in which chunk.
expect 0 plan u.tape --chunk $((arena / 4)) --picture chunks.svg --csv chunks.csv --json -o chunked.tape; quiet
[ "$(number chunk_bytes)" = $((arena / 4)) ] || fail "chunk_bytes is $(number chunk_bytes)"
[ "$(number arena_bytes)" -le $((arena + arena / 20)) ] || fail "in chunks the arena is $(number arena_bytes), in one $arena"
grep -qF 'class="joint"' chunks.svg || fail "no joints in chunks.svg"; ! grep -qF 'joint' u.svg || fail "joints in u.svg"
head -1 chunks.csv | grep -q ',shape,arena$' || fail "header of chunks.csv: $(head -1 chunks.csv)"
expect 0 offsets chunks.csv --anew --chunk $((arena / 4)) --json; [ "$(number arenas)" -ge 2 ] || fail "$(cat out)"
expect 0 plan u.tape --chunk 64KiB; answered "chunks"; answered "64.00 KiB"; expect 0 plan u.tape --chunk 64KiB --explain memory; answered "by chunk"; answered "of no more than 65536 bytes"
expect 0 plan u.tape --explain memory; ! grep -q chunk out || fail "chunks without --chunk"
expect 0 verify chunked.tape; expect 0 replay chunked.tape --check-eager --json; [ "$(number planned_peak_bytes)" = "$(number observed_peak_bytes)" ] || fail "$(cat out)"
expect 0 replay u.tape --chunk 64KiB --check-eager; expect 0 bench u.tape --chunk 64KiB --min-time 0.01 --threads 1
for wrong in 0 -1 lots 5PB 25%; do for command in plan replay bench; do expect 2 $command u.tape --chunk=$wrong; done; done
expect 2 plan u.tape --chunk; for command in plan replay bench; do expect 0 $command --help; answered --chunk; done

# The alignment is the device's unless said.
for wrong in 0 -1 48; do expect 2 plan u.tape --align=$wrong; done; expect 2 plan u.tape --device tpu
expect 0 plan u.tape --json; [ "$(number alignment)" = 64 ] || fail "$(cat out)"
expect 0 plan u.tape --device cuda --json; [ "$(number alignment)" = 256 ] || fail "$(cat out)"
expect 0 plan u.tape --device cuda --align 32 --json; [ "$(number alignment)" = 32 ] || fail "$(cat out)"

# Names that no picture has, folders that are not there.
expect 2 plan u.tape --picture u.jpg; said ".svg or .png"; absent u.jpg
expect 3 plan u.tape --picture nowhere/u.svg; said nowhere
expect 3 plan u.tape --csv nowhere/u.csv; said nowhere
expect 2 plan u.tape --explain=everything

# --explain takes a topic, the name of a value, or nothing.
for words in "plan hand.graph --explain foo" "plan --explain foo hand.graph"; do
  expect 2 $words; said "'foo' is not one of choices, segments, peak, memory"
done
expect 2 plan hand.graph --explain peak memory; said "'memory' is a second"
expect 2 plan hand.graph --explain peak other.graph; said other.graph
for words in "plan hand.graph --explain" "plan --explain hand.graph" "plan hand.graph --explain --json" "plan --explain choices hand.graph"; do expect 0 $words; quiet; done
expect 0 plan hand.graph --explain; answered "nothing is recomputed"
expect 0 plan --help; answered "--explain [TOPIC|VALUE]"

# No line of an explanation is wider than a wide terminal, even where a workspace is named after its node.
for model in $explained; do
  expect 0 record $model --abstract -o wide.tape; expect 0 plan wide.tape --explain peak
  awk -v columns=150 'length > columns { exit 1 }' out || fail "$model: $(awk 'length > 150' out | head -3)"
done

# PNG is the viewer's: a tool that was built without it says so by its exit code.
if [ -x "$(dirname "$tool")/tapedeck-viewer" ]; then
  expect 0 plan u.tape --picture u.png
  [ "$(head -c 4 u.png | tail -c 3)" = PNG ] || fail "u.png is no PNG"
else
  expect 6 plan u.tape --picture u.png; said "drawn by the viewer"; said ".svg needs none"; absent u.png
  expect 6 view u.tape; said "no tapedeck-viewer beside this tool"
fi

# A budget that cannot be met: the best plan found is still explained and drawn.
expect 4 plan u.tape --budget 1000 --explain peak --picture over.svg; answered "the most bytes are alive"
grep -qF 'budget' over.svg || fail "over.svg shows no budget"
# What --csv writes, offsets reads: with its own offsets it is right as it is, placed anew it is no higher than the plan's arena.
expect 0 record cnn -o c.tape
expect 0 plan c.tape --csv c.csv --json; arena=$(number arena_bytes)
expect 0 offsets c.csv --json; [ "$(number peak)" -le "$arena" ] || fail "the plan's own offsets end at $(number peak), its arena at $arena"
expect 0 offsets c.csv --anew -o again.csv --json; [ "$(number peak)" -le "$arena" ] || fail "placed anew it ends at $(number peak), not $arena"
[ "$(wc -l < again.csv)" = "$(wc -l < c.csv)" ] || fail "rows were lost"
finish
