#!/usr/bin/env bash
# calibrate: measured once, kept per user, used by plans, and never believed when it cannot be.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.tape cache cal.json
unset TAPEDECK_CALIBRATION
export XDG_CACHE_HOME=$PWD/cache HOME=$PWD/cache/home
kept=cache/tapedeck/calibration.json

expect 3 calibrate --show; said "no calibration"
expect 0 record mlp --batch 8 -o m.tape
expect 0 plan m.tape --json; quiet; answered '"costs": "estimate"'; cp out estimated

start=$(date +%s)
expect 0 calibrate --quick; quiet; answered "rates of"; answered "$kept"
echo "calibrate --quick took $(($(date +%s) - start)) s"
[ -f $kept ] || fail "nothing was kept"
[ "$(ls cache/tapedeck)" = calibration.json ] || fail "debris: $(ls cache/tapedeck)"
expect 0 calibrate --show; answered matmul; answered "elementwise x"
expect 0 calibrate --show --json; quiet
for key in schema file machine program quick kin_ratio ops op version call_us us_per_flop us_per_byte us_per_far_byte points; do answered "\"$key\":"; done
[ "$(grep -c '"op":' out)" -gt 100 ] || fail "rates of $(grep -c '"op":' out) ops only"

# Plans use it unless told not to; the file of a plan says what it was made with.
expect 0 plan m.tape --json -o c.tape; quiet; answered '"costs": "calibrated"'
expect 0 plan m.tape --costs calibrated -o d.tape; cmp -s c.tape d.tape || fail "two plans of one calibration differ"
expect 0 plan m.tape --costs estimate --json; diff <(grep -v solve_ms out) <(grep -v solve_ms estimated) || fail "--costs estimate uses the calibration"
TAPEDECK_CALIBRATION=off expect 0 plan m.tape --json; answered '"costs": "estimate"'
expect 0 replay c.tape --check-eager; expect 0 replay m.tape --profile --steps 4 --save p.tape --json; answered '"estimates": "calibrated"'
expect 0 plan p.tape --json; answered '"costs": "profile"'
expect 0 plan p.tape --costs calibrated --json; answered '"costs": "calibrated"'
expect 0 calibrate --check m.tape; answered calibrated; answered profile; answered m.tape
expect 0 calibrate --check m.tape p.tape --json; answered '"schema": "tapedeck.cost_check/1"'

# One that cannot be believed is left, and said so; nothing fails for it.
cp $kept good.json
sed 's/"machine":"[^"]*"/"machine":"another"/' good.json > $kept
expect 0 plan m.tape --json; said "another machine"; answered '"costs": "estimate"'
expect 2 plan m.tape --costs calibrated
head -c 1000 good.json > $kept; expect 0 plan m.tape --json; said "not a readable calibration"; answered '"costs": "estimate"'
: > $kept; expect 0 plan m.tape --json; said $kept; expect 3 calibrate --show
cp good.json elsewhere.json
TAPEDECK_CALIBRATION=$PWD/elsewhere.json expect 0 plan m.tape --json; quiet; answered '"costs": "calibrated"'

# Stopped, it changes nothing; where it cannot write, it says so.
cp good.json $kept
"$tool" calibrate > out 2> err & pid=$!
sleep 1; kill -INT $pid; wait $pid; code=$?
[ $code = 130 ] || fail "interrupted calibrate exited $code"
cmp -s good.json $kept || fail "interrupted, it changed what was kept"
TAPEDECK_CALIBRATION=off expect 2 calibrate --quick; said "-o"
finish
