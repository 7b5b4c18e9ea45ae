#!/usr/bin/env bash
# -q, -v and progress: on a terminal a command of more than a second shows that it is at work; elsewhere nothing is shown.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph

# The same letter means the same in every command.
expect 0 --help; sed -nE '/^Begin with/q; s/^  ([a-z]+) +[A-Z].*/\1/p' out > commands
while read -r command; do
  expect 0 "$command" --help
  for option in '-q, --quiet' '-v, --verbose'; do answered "  $option "; done
  sed -nE 's/^  (-[a-z]), (--[a-z-]+).*/\1 \2/p' out
done < commands | sort -u > letters
[ "$(cut -d ' ' -f 1 letters | sort | uniq -d)" = "" ] || fail "a letter has two meanings: $(tr '\n' ';' < letters)"
grep -qx -- '-o --output' letters || fail "-o is not --output"

expect 0 record mlp --batch 4 -o m.tape
# Notes are left out with -q, errors are not.
expect 0 record mlp --batch 2 -o n.tape; expect 0 replay n.tape --save w.safetensors
expect 0 replay m.tape --weights w.safetensors --dims batch=2; said 'the samples of x, y'; expect 0 replay m.tape --weights w.safetensors --dims batch=2 -q; quiet
printf 'graph h(%%x: f32[1]) state(%%w: f32[1]) {\n  %%y: f32[1] = add(%%x, %%w)\n  return %%y\n}\n' > h.graph
header='{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"v":{"dtype":"I8","shape":[1],"data_offsets":[4,5]}}'
# shellcheck disable=SC2059
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s\\0\\0\\0\\0\\1" "$header" > foreign.safetensors
expect 0 replay h.graph --weights foreign.safetensors; said "the tensor 'v' is I8[1], which cannot be loaded"; expect 0 replay h.graph --weights foreign.safetensors -q; quiet
expect 3 replay missing.tape -q; said missing.tape
expect 0 plan m.tape -v; said 'tapedeck: planning: '; expect 0 plan m.tape; quiet

# A second and more, with stderr on a terminal and stdout in a file.
printf 'graph g(%%x: f32[2]) {\n  %%y: f32[2] = relu(%%x)\n  return %%y\n}\n' > g.graph
if command -v python3 > /dev/null; then
  cat > terminal.py << 'P'
import os, pty, subprocess, sys
main, other = pty.openpty()
with open("out", "wb") as out:
    code = subprocess.run(sys.argv[1:], stdout=out, stderr=other, stdin=subprocess.DEVNULL).returncode
os.close(other)
shown = b""
try:
    while piece := os.read(main, 65536):
        shown += piece
except OSError:
    pass
open("err", "wb").write(shown)
sys.exit(code)
P
  python3 terminal.py "$tool" reduce g.graph --check 'sleep 0.7; false' --max-checks 1 || fail "reduce on a terminal exited $?"
  grep -qaE 'reduc[a-z]* 1 s|reduc[a-z]* [0-9]+ %' err || fail "nothing tells that reduce is at work: $(cat -v err)"
  answered 'graph g'; grep -qa $'\r' out && fail "progress is in the answer"
  tail -c 5 err | grep -qaF $'\033[K' || [ "$(tail -c 1 err)" = "" ] || fail "the line stays: $(cat -v err)"
  python3 terminal.py "$tool" reduce g.graph --check 'sleep 0.7; false' --max-checks 1 -q || fail "reduce -q on a terminal exited $?"
  grep -qaE '[0-9] (s|%)' err && fail "-q shows progress: $(cat -v err)"
fi
"$tool" reduce g.graph --check 'sleep 0.7; false' --max-checks 1 > out 2> err || fail "reduce exited $?"
grep -qa $'\r' err && fail "progress without a terminal: $(cat -v err)"
finish
