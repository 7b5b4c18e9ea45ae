#!/usr/bin/env bash
# A replay holds the state of its file once: it is read straight into the memory where the steps use it.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph
if ! command -v python3 > /dev/null; then
  echo "skipped: python3, which tells the peak of the memory, is not here"
  finish
fi

# graph_of ELEMENTS: adds to a state of this size in every step.
graph_of() {
  printf 'graph g(%%x: f32[1]) state(%%w: f32[%d]) {\n  %%v: f32[%d] = add(%%w, %%x)\n  return %%x\n  update %%w = %%v\n}\n' "$1" "$1"
}
# peak ARGUMENTS...: KiB that the tool takes at most.
peak() {
  python3 -c 'import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if code == 0 else "failed")' "$tool" "$@"
}

graph_of 1 > small.graph
graph_of 8388608 > large.graph  # 32 MiB
for size in small large; do expect 0 replay $size.graph --save $size.tape --threads 1; done
small=$(peak replay small.tape --threads 1) large=$(peak replay large.tape --threads 1)
[ $((large - small)) -lt $((32 * 1024 * 3 / 2)) ] || fail "a state of 32 MiB costs $((large - small)) KiB"

# With its new state written back, and in the values that a copy gives.
expect 0 replay large.tape --threads 1 --save twice.tape
expect 0 replay large.tape --threads 1 --check-eager --save checked.tape
cmp -s twice.tape checked.tape || fail "bound and copied state differ"
cmp -s twice.tape large.tape && fail "the step has not changed the state"
finish
