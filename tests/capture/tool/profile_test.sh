#!/usr/bin/env bash
# replay --profile, and plans that cost what was measured.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape
export TAPEDECK_CALIBRATION=off

expect 0 record mlp --batch 8 -o m.tape
expect 0 replay m.tape --profile; quiet; answered "written nowhere"; answered "share"; answered "us in kernels"; answered "23 steps"
expect 0 info m.tape --json; answered '"profile": null'

expect 0 replay m.tape --profile --steps 8 --save p.tape --json; quiet
for key in profile machine threads steps run_us kernels_us estimate_us estimates saved name op us runs share ratio; do answered "\"$key\":"; done
answered '"saved": "p.tape"'; answered '"estimates": "estimate"'
expect 0 info p.tape; answered "profile: "; answered "5 steps"
expect 0 info p.tape --json; answered '"run_us":'
expect 0 verify p.tape

# A replay is a replay: the state is that of eight steps, whoever watched.
expect 0 replay m.tape --steps 8 --threads 1 --save eight.tape
expect 0 replay eight.tape --steps 1 --save b.tape
expect 0 replay eight.tape --weights p.tape --steps 1 --save c.tape; cmp -s b.tape c.tape || fail "profiling changed the state"
expect 0 replay m.tape --profile --check-eager --steps 4; answered "equal to eager yes"

# Plans follow it, and say so; the same profile gives the same plan.
expect 0 plan m.tape --json; answered '"costs": "estimate"'; answered '"measured_nodes": 0'
expect 0 plan p.tape --json -o pp.tape; quiet; answered '"costs": "profile"'
[ "$(number measured_nodes)" -gt 5 ] || fail "only $(number measured_nodes) nodes were known"
expect 0 plan p.tape -o pq.tape; answered "nodes measured"; cmp -s pp.tape pq.tape || fail "two plans of one profile differ"
expect 0 verify pp.tape; expect 0 replay pp.tape --steps 2 --check-eager
expect 0 info pp.tape; answered "profile: "
expect 0 plan p.tape --costs estimate --json; answered '"costs": "estimate"'; cp out estimated
expect 0 plan m.tape --json; diff <(grep -v solve_ms out) <(grep -v solve_ms estimated) || fail "--costs estimate is not the plan without a profile"

# Clones are told from their originals no more than their time is.
expect 0 record cnn --batch 8 -o k.tape; expect 0 plan k.tape --budget 70% -o budget.tape
expect 0 replay budget.tape --profile --steps 5 --json; quiet; answered '"runs": 2'

expect 2 plan m.tape --costs profile; said "replay --profile"
expect 2 plan m.tape --costs calibrated; said "--costs calibrated"
expect 2 plan m.tape --costs guess
expect 2 replay m.tape --profile --threads 2; said "one thread"
finish
