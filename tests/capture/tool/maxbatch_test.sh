#!/usr/bin/env bash
# maxbatch: the largest batch of a model and of a file; the answer fits and the next batch does not.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape
expect 0 maxbatch lenet --memory 8MiB --cost-limit 1.2 --json; quiet
batch=$(number batch)
[ "${batch:-0}" -gt 1 ] || fail "the largest batch is $batch"
memory=$((8 * 1024 * 1024))
expect 0 record lenet --batch "$batch" --abstract -o fits.tape
expect 0 plan fits.tape --budget $memory --json
expect 0 record lenet --batch $((batch + 1)) --abstract -o next.tape
"$tool" plan next.tape --budget $memory --json > out 2> err; code=$?
if [ $code = 0 ]; then
  python3 -c 'import json, sys; p = json.load(open("out")); sys.exit(p["cost_us"] <= 1.2 * p["keep_all_cost_us"])' || fail "batch $((batch + 1)) fits too"
elif [ $code != 4 ]; then
  fail "plan of batch $((batch + 1)) exited $code"
fi
expect 0 maxbatch lenet --memory 8MiB --cost-limit 1.2; answered "lenet: batch $batch"; answered "one more         batch $((batch + 1)):"

# A file needs its batch; everything but state grows with it.
expect 0 maxbatch fits.tape --batch "$batch" --memory 8MiB --cost-limit 1.2 --json; of_file=$(number batch)
[ $((of_file - batch)) -ge -2 ] && [ $((of_file - batch)) -le 2 ] || fail "the file's answer is $of_file, the model's $batch"
expect 0 maxbatch fits.tape --batch "$batch" --memory 8MiB --fixed 4MiB --json; [ "$(number batch)" -lt "$of_file" ] || fail "fixed bytes change nothing"

expect 2 maxbatch fits.tape --memory 8MiB; said "--batch is missing"
expect 2 maxbatch lenet; said "--memory is missing"
expect 2 maxbatch lenet --memory lots; said lots
expect 2 maxbatch lenet --memory 8MiB --cost-limit 0.5
expect 3 maxbatch lenett --memory 8MiB; said "lenet"
expect 4 maxbatch lenet --memory 10KB; answered "lenet: batch 0"; said "not even a batch of 1 fits: it needs"
finish
