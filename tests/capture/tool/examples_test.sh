#!/usr/bin/env bash
# The help of every command has examples, the manual page has them too, and they run as they stand, but for a smaller batch and shorter benches, one
# after the other in one folder.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.tape ./*.graph ./*.csv results hello

expect 0 --help
sed -nE '/^Begin with/q; s/^  ([a-z]+) +[A-Z].*/\1/p' out > commands
while read -r command; do
  expect 0 "$command" --help; quiet
  grep -qE "^ *tapedeck $command( |\$)" out || fail "the help of $command has no example"
done < commands

# The examples, in the order in which they make each other's files. Not run: view opens a window, run needs an installed library,
# calibrate measures for half a minute. The meanings stand behind two spaces.
printf 'graph g(%%x: f32[4,3]) state(%%w: f32[3,2]) {\n  %%h: f32[4,2] = matmul(%%x, %%w)\n  %%e: f32[4,2] = exp(%%h)\n  %%loss: f32[] = sum(%%e) {axes=[0,1]}\n  return %%loss\n}\n' > g.graph
mkdir -p bin; ln -sf "$(realpath "$tool")" bin/tapedeck; PATH=$PWD/bin:$PATH
for command in record plan info print verify compare offsets replay bench opt gradient export reduce models ops settings devices man completions new; do
  expect 0 "$command" --help
  sed -nE '/^Examples:/,/^$/s/^  (tapedeck .*)/\1/p' out | sed -E 's/  +.*//' > lines
  [ -s lines ] || fail "no examples of $command"
  while read -r line; do
    [ "$command" = bench ] && line+=" --min-time 0.05 --warmup 1"
    [ "$command" = record ] && line=${line/--batch 64/--batch 16}
    eval "$line" > answer 2> err < /dev/null; code=$?
    case $command:$code in
      *:0 | compare:1) ;;
      *) fail "$line exited $code: $(head -c 300 err)" ;;
    esac
  done < lines
done
for file in c.tape p.tape q.tape placed.csv b.graph c.dot tapedeck.1 results hello/main.cpp; do [ -e "$file" ] || fail "no example wrote $file"; done
grep -qF 'tapedeck plan c.tape \-\-budget 60% \-o p.tape' tapedeck.1 || fail "the manual page lacks the examples"
finish
