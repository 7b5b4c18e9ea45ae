#!/usr/bin/env bash
# Every model of the zoo can be benched at a small size, on two threads, in less than three minutes in all; and on one thread and two.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

what=--zoo models=$("$tool" models --json | grep -c '"name"') limit=180
if sanitized; then
  echo "built with a sanitizer: three models, and no limit of time"
  what="lenet cnn rnn_cell" models=3 limit=100000
fi
began=$SECONDS
# shellcheck disable=SC2086
expect 0 bench $what --small --threads 2 --warmup 1 --min-time 0.01 --json; quiet
took=$((SECONDS - began))
[ "$(grep -c '"name"' out)" = "$models" ] || fail "$(grep -c '"name"' out) rows for $models models"
[ "$(grep -c '"outside_kernels_ms": [0-9]' out)" = "$models" ] || fail "some model lacks its time outside kernels"
paste <(grep planned_peak_bytes out) <(grep observed_peak_bytes out) | tr -d ',' |
  awk '$2 != $4 { print; bad = 1 } END { exit bad }' > bad || fail "planned and observed peaks differ: $(cat bad)"
expect 0 bench lenet mlp --small --threads 1,2 --warmup 1 --min-time 0.01 --json; quiet
[ "$(grep -c '"name"' out)" = 4 ] || fail "$(grep -c '"name"' out) rows for 2 models on 1 and 2 threads"
[ "$took" -lt "$limit" ] || fail "took $took s"
finish
