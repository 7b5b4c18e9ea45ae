#!/usr/bin/env bash
# Files that commands write: none over another or over what is read, and - is stdout where it is text.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.tape ./*.graph ./*.svg ./*.csv ./*.json ./*.pickle ./- folder bin

expect 0 record mlp --batch 4 -o u.tape
cp u.tape before.tape; ln -sf u.tape link.tape; mkdir -p folder; ln -f u.tape folder/hard.csv
untouched() { cmp -s u.tape before.tape || fail "$1: u.tape was overwritten"; }

# What is read is not overwritten, by whatever name.
for name in u.tape ./u.tape folder/../u.tape link.tape folder/hard.csv "$PWD/u.tape"; do
  expect 2 plan u.tape --csv "$name"; said "--csv $name: it would overwrite u.tape, which is read"; untouched "--csv $name"
  expect 2 replay u.tape --trace "$name"; said "--trace $name"; untouched "--trace $name"
done
ln -sf u.tape u.svg; expect 2 plan u.tape --picture u.svg; said '--picture u.svg: it would overwrite'; untouched --picture; rm u.svg
ln -sf u.tape m.json; expect 2 replay u.tape --memory-trace m.json; said '--memory-trace m.json'; untouched --memory-trace; rm m.json
expect 2 gradient u.tape --of %loss --wrt %x -o u.tape; said '-o u.tape'; untouched gradient
expect 2 reduce u.tape --check false -o u.tape; said '-o u.tape'; untouched reduce
"$tool" print u.tape > g.graph; cp g.graph same.graph
expect 2 plan g.graph -o g.graph; said '-o g.graph'; expect 2 replay g.graph --save g.graph; said '--save g.graph'
cmp -s g.graph same.graph || fail "g.graph was overwritten"

# Two outputs are two files.
expect 2 plan u.tape --csv out.svg --picture out.svg; said '--csv out.svg and --picture out.svg are one file'; absent out.svg
expect 2 plan u.tape --csv p.tape -o ./p.tape; said 'are one file'; absent p.tape
expect 2 replay u.tape --trace t.json --memory-trace ./t.json; said 'are one file'; absent t.json
expect 2 replay u.tape --trace t.json --save t.json; said 'are one file'; absent t.json

# What has always been fine: a plan goes into the tape that it is of, new state into the tape that it was read from.
cp u.tape own.tape
expect 0 plan own.tape -o own.tape; expect 0 verify own.tape; expect 0 replay own.tape --save own.tape; expect 0 verify own.tape

# - is stdout, and the answer goes beside it.
expect 0 plan u.tape --csv p.csv
expect 0 plan u.tape --csv -; cmp -s out p.csv || fail "--csv -: $(head -3 out)"; said 'lower bound'; absent ./-
expect 0 plan u.tape --csv - --json; cmp -s out p.csv || fail "--csv - --json: $(head -3 out)"; said '"schema": "tapedeck.plan/1"'
expect 0 opt u.tape -o o.graph; expect 0 opt u.tape -o - --json; cmp -s out o.graph || fail "opt -o -: $(head -3 out)"; said '"schema"'; absent ./-
expect 2 plan u.tape -o -; said '-o -: this is not written to stdout'; absent ./-
expect 2 record mlp -o -; absent ./-
expect 2 replay u.tape --trace -; absent ./-

# What is recomputed, and why, is in the JSON as in the text.
expect 0 record cnn --batch 8 -o c.tape
expect 0 plan c.tape --budget 70% --explain choices; grep -q 'bytes off' out || fail "nothing is recomputed: $(head -20 out)"
expect 0 plan c.tape --budget 70% --explain choices --json; for key in decisions value span cost_us clones live_peak_bytes reason; do answered "\"$key\":"; done
expect 0 plan u.tape --json; ! grep -q decisions out || fail "decisions unasked for"
[ "$(grep -c '"order":' out)" = 1 ] || fail "order stands $(grep -c '"order":' out) times"

# A budget that cannot be met, and a picture that only the viewer draws: the answer comes, the reason comes, no picture, and 4. The viewer is a
# stand-in here, which is not to be called.
mkdir -p bin; cp "$tool" bin/tapedeck; printf '#!/bin/sh\nexit 99\n' > bin/tapedeck-viewer; chmod +x bin/tapedeck-viewer
LD_LIBRARY_PATH=$(dirname "$tool")/../lib:${LD_LIBRARY_PATH:-} bin/tapedeck plan u.tape --budget 1000 --explain peak --picture o.png > out 2> err; code=$?
[ $code = 4 ] || fail "over budget with a PNG exits $code: $(cat err)"
answered 'the most bytes are alive'; said 'o.png: not drawn'; said 'floor'; absent o.png
rm -rf bin
finish
