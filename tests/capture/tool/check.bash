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
absent() { [ ! -e "$1" ] || fail "$1 was written"; }
finish() { [ "$failures" = 0 ] && echo ok; exit $((failures > 0)); }
