# What the shell tests of the tool share. TAPEDECK_TOOL names the tool; each test runs in a directory of its own.
set -uo pipefail
tool=${TAPEDECK_TOOL:?}
failures=0

fail() { printf 'FAILED: %s\n' "$*"; failures=$((failures + 1)); }

# expect CODE ARGUMENTS...: runs the tool, keeps its output in `out` and `err`, checks the exit code.
expect() {
  local wanted=$1 got
  shift
  "$tool" "$@" > out 2> err
  got=$?
  [ "$got" = "$wanted" ] || fail "tapedeck $* exited $got, not $wanted: $(head -c 300 err)"
}
said() { grep -qF -- "$1" err || fail "stderr lacks '$1': $(head -c 300 err)"; }
answered() { grep -qF -- "$1" out || fail "stdout lacks '$1': $(head -c 300 out)"; }
quiet() { [ ! -s err ] || fail "stderr is not empty: $(head -c 300 err)"; }
# number KEY: the integer behind a JSON key of the last answer.
number() { sed -nE "s/^ *\"$1\": (-?[0-9]+),?\$/\1/p" out | head -1; }
# interrupt PID [SECONDS]: Ctrl-C for a child that runs the tool, sent a second, or so many, after it has begun to listen (it blocks the signal
# then; before, a job of the background ignores it), and once: a second one would end it at once. Sets `code`; what does not end within 60 s is killed and fails.
interrupt() {
  local pid=$1 tries=0 blocked
  until blocked=$(awk '/^SigBlk/ { print $2 }' "/proc/$pid/status" 2> /dev/null) && [ $((0x${blocked:-0} & 2)) != 0 ]; do
    [ $((tries += 1)) -le 600 ] && kill -0 "$pid" 2> /dev/null || break
    sleep 0.1
  done
  sleep "${2:-1}"
  kill -INT "$pid" 2> /dev/null || fail "it had ended by itself: $(head -c 300 err)"
  for ((tries = 0; tries < 600; ++tries)); do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.1
  done
  kill -9 "$pid" 2> /dev/null && fail "it did not stop within 60 s"
  wait "$pid"; code=$?
}
# True if the tool was built with a sanitizer, which makes it several times as slow.
sanitized() { grep -qaE '__(asan|tsan|ubsan)_' "$tool"; }
absent() { [ ! -e "$1" ] || fail "$1 was written"; }
finish() { [ "$failures" = 0 ] && echo ok; exit $((failures > 0)); }
