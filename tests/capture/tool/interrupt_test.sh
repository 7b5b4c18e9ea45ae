#!/usr/bin/env bash
# Ctrl-C in the middle of long work: it ends at once, says so, and leaves no half-written file.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.json ./*.graph
expect 0 record mlp --batch 64 -o m.tape
cp m.tape before.tape

# In the middle of its steps; on two threads and on one.
for threads in 1 2; do
  "$tool" replay m.tape --steps 100000000 --threads $threads --save s.tape --trace t.json > out 2> err & pid=$!
  interrupt $pid
  [ $code = 130 ] || fail "interrupted replay on $threads threads exited $code: $(head -c 300 err)"
  said interrupted
  absent s.tape; absent t.json
  cmp -s m.tape before.tape || fail "the file it read has changed"
done

# A --loop keeps the numbers of the steps until then.
"$tool" replay m.tape --loop 1000 --json --save s.tape > out 2> err & pid=$!
interrupt $pid
[ $code = 130 ] || fail "interrupted replay --loop exited $code: $(head -c 300 err)"
said 'interrupted after'; answered '"interrupted": true'; [ "$(number steps)" -ge 1 ] || fail "$(head -c 300 out)"; absent s.tape

# In a loop that would never end, and in commands that wait for the rest of their text or record a large model.
cat > endless.graph << 'G'
graph endless(%x: f32[1]) {
  %go: bool[] = constant() {value=[true]}
  %n: i64[], %y: f32[1] = while(%x, %go) {carried=1} (%i: i64[], %c: f32[1], %g: bool[]) {
    return %g
  } (%i: i64[], %c: f32[1], %g: bool[]) {
    %d: f32[1] = neg(%c)
    return %d
  }
  return %y
}
G
mkfifo half.graph
exec 3<> half.graph  # a writer that does not end
printf 'graph g(%%x: f32[2]) {\n' >&3
while read -r words; do
  read -ra line <<< "$words"
  "$tool" "${line[@]}" > out 2> err & pid=$!
  interrupt $pid 0.2
  [ $code = 130 ] || fail "interrupted, tapedeck $words exited $code: $(head -c 300 err)"
  said interrupted
  absent big.tape
done << 'END'
replay endless.graph --threads 1
replay endless.graph --threads 2
bench endless.graph --threads 1,2
verify half.graph
print half.graph
opt half.graph
gradient half.graph --of y --wrt x
record gpt2 --abstract --layers 10000 -o big.tape
END
finish
