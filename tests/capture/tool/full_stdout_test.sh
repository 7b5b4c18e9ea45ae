#!/usr/bin/env bash
# Every command says that its answer could not be written: exit code 3 and a message, with and without --json.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph ./*.csv
expect 0 record mlp --batch 4 -o m.tape
printf 'graph g(%%x: f32[2]) {\n  %%y: f32[2] = relu(%%x)\n  %%s: f32[] = sum(%%y) {axes=[0]}\n  return %%s\n}\n' > g.graph
printf 'id,lower,upper,size\n1,0,2,64\n' > list.csv
printf '{"nodes":[{"id":0,"cost_ram":4,"cost_cpu":1}],"links":[]}' > g.json

# A line of arguments that succeeds, for each command.
arguments_of() {
  case $1 in
    record) echo record mlp --abstract -o r.tape ;;
    info | print | verify | plan) echo "$1 m.tape" ;;
    sweep) echo sweep m.tape --points 2 --strategies none ;;
    maxbatch) echo maxbatch m.tape --batch 4 --memory 1GB ;;
    replay | bench) echo "$1 m.tape --threads 1" ;;
    offsets) echo offsets list.csv ;;
    calibrate) echo calibrate --check m.tape ;;
    opt) echo opt m.tape ;;
    gradient) echo gradient g.graph --of s --wrt x ;;
    reduce) echo 'reduce g.graph --expect-exit 0 --max-checks 2 --check true' ;;
    completions) echo completions bash ;;
    man) echo man ;;
    new) rm -rf project; echo new project ;;  # it writes over nothing
    export) echo export dot m.tape ;;
    import) echo import graph g.json ;;
    compare) echo compare m.tape m.tape ;;
    models | ops | settings | devices) echo "$1" ;;
    *) fail "this test has no line for $1" ;;
  esac
}

# full ARGUMENTS...: stdout takes no byte.
full() {
  "$tool" "$@" > /dev/full 2> err
  local code=$?
  [ $code = 3 ] || fail "tapedeck $* > /dev/full exited $code: $(head -c 300 err)"
  grep -q '^tapedeck: stdout: cannot write: No space left on device' err || fail "tapedeck $* > /dev/full said: $(head -c 300 err)"
}

expect 0 --help
sed -nE '/^Begin with/q; s/^  ([a-z]+) +[A-Z].*/\1/p' out | grep -vx -e view -e run > commands  # both print nothing; a script has stdout for itself
[ "$(wc -l < commands)" = 24 ] || fail "the help lists $(wc -l < commands) commands beside view and run"
full --help; full --version; full plan --help
while read -r command; do
  for try in expect full json; do
    read -ra line <<< "$(arguments_of "$command")"
    case $try-$command in
      expect-*) expect 0 "${line[@]}" ;;
      full-*) full "${line[@]}" ;;
      json-completions | json-man) ;;
      json-*) full "${line[@]}" --json ;;
    esac
  done
done < commands
full plan m.tape --csv -
full offsets list.csv -o -

# A closed stdout must not become a file that the command writes.
"$tool" record mlp --abstract -o closed.tape >&- 2> err; code=$?
[ $code = 3 ] || fail "a closed stdout exits $code"
said "stdout: cannot write: Bad file descriptor"
expect 0 verify closed.tape
finish
