#!/usr/bin/env bash
# Every model of the zoo can be benched at a small size, on one and two threads, in less than three minutes in all.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

began=$SECONDS
expect 0 bench --zoo --small --threads 1,2 --min-time 0.05 --json; quiet
took=$((SECONDS - began))
expect_models=$("$tool" models --json | grep -c '"name"')
[ "$(grep -c '"name"' out)" = $((expect_models * 2)) ] || fail "$(grep -c '"name"' out) rows for $expect_models models"
[ "$(grep -c '"outside_kernels_ms": [0-9]' out)" = $((expect_models * 2)) ] || fail "some model lacks its time outside kernels"
paste <(grep planned_peak_bytes out) <(grep observed_peak_bytes out) | tr -d ',' |
  awk '$2 != $4 { print; bad = 1 } END { exit bad }' > bad || fail "planned and observed peaks differ: $(cat bad)"
# A sanitizer slows everything down by itself; the limit is for what is shipped.
[ "$took" -lt "${TAPEDECK_ZOO_SECONDS:-180}" ] || fail "took $took s"
finish
