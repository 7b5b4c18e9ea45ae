#!/usr/bin/env bash
# The bundle's run.sh on a machine without a GPU: one line and exit code 6, and nothing is written. The folder of the test has the program that was built
# in place of the bundle's own; where it was not built, a stand-in that says what it says.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
built=$(dirname "${TAPEDECK_TOOL:?}")
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

rm -rf bundle out
mkdir -p bundle/bin
cp "$here"/bundle/{checks,peers}.py bundle/
cp "$here/bundle/run.bash" bundle/run.sh
reason='no CUDA device: the NVIDIA driver is not installed'
if "$built/tapedeck" devices | grep -q '^cuda *available'; then
  echo 'skipped: this machine has a GPU'
  exit 0
fi
if [ -x "$built/gpu_bench" ]; then
  ln -s "$built/gpu_bench" bundle/bin/gpu_bench
else
  printf '#!/bin/sh\necho "gpu_bench: %s" >&2\nexit 6\n' "$reason" > bundle/bin/gpu_bench
  chmod +x bundle/bin/gpu_bench
fi

bundle/run.sh out > said 2>&1
code=$?
[ $code = 6 ] || fail "run.sh exited $code, not 6: $(head -c 300 said)"
[ "$(wc -l < said)" = 1 ] || fail "run.sh said more than one line: $(head -c 300 said)"
grep -q '^run.sh: gpu_bench: ' said || fail "run.sh gave no reason: $(cat said)"
[ ! -e out ] || fail 'run.sh wrote its folder'

bundle/run.sh out nothing > said 2>&1
code=$?
[ $code = 2 ] || fail "run.sh with an unknown part exited $code, not 2"
grep -q "no part 'nothing'" said || fail "run.sh did not name the unknown part: $(cat said)"

# The test program on a machine that must have a GPU.
if [ -x "$built/tests_gpu" ]; then
  TAPEDECK_REQUIRE_GPU=1 "$built/tests_gpu" > said 2>&1
  code=$?
  [ $code = 6 ] || fail "tests_gpu exited $code, not 6: $(head -c 300 said)"
  [ "$(wc -l < said)" = 1 ] || fail "tests_gpu said more than one line: $(head -c 300 said)"
fi
echo ok
