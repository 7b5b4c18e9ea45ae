#!/usr/bin/env bash
# With --json every error is one object on stdout, of one schema, and a line on stderr.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph
expect 0 record mlp --batch 4 -o m.tape

# failed CODE COMMAND ARGUMENTS...: keeps what was printed; at the end, all of it is looked at.
runs=0
failed() {
  expect "$1" "${@:2}" --json
  runs=$((runs + 1))
  cp out "$runs.out"; cp err "$runs.err"; echo "$1" "$2" > "$runs.call"
}

# Every command refuses an option that it does not know.
expect 0 --help
sed -nE '/^Begin with/q; s/^  ([a-z]+) +[A-Z].*/\1/p' out > commands
[ "$(wc -l < commands)" = 26 ] || fail "the help lists $(wc -l < commands) commands"
while read -r command; do failed 2 "$command" --nosuch; done < commands
failed 2 nosuch; failed 2 --nosuch

# Files, budgets, values, kernels.
for command in info print verify plan sweep replay opt; do failed 3 $command missing.tape; done
failed 3 bench missing.tape --threads 1; failed 3 calibrate --check missing.tape; failed 3 offsets missing.csv; failed 3 import graph missing.json; failed 2 import dot missing.json
failed 3 reduce missing.tape --check true; failed 3 gradient missing.tape --of y --wrt x
failed 2 record nosuch -o r.tape; failed 3 record mlp --abstract -o no/such/folder.tape
failed 2 opt m.tape --pass nosuch; failed 2 plan m.tape --budget lots; failed 2 sweep m.tape --points 1; failed 2 maxbatch m.tape --batch 4; failed 2 maxbatch m.tape --memory 1GB; failed 3 maxbatch missing.tape --batch 1 --memory 1GB; failed 3 sweep m.tape --points 2 --svg no/such/folder.svg; failed 2 gradient m.tape --of nosuch --wrt x
failed 3 plan m.tape -o no/such/folder.tape; failed 3 plan m.tape --csv no/such/folder.csv
failed 3 replay m.tape --save no/such/folder.tape; failed 4 bench m.tape --budget 1KiB --threads 1
printf 'graph g(%%l: f32[2,3]) {\n  %%k: i32[2] = full() {shape=[2], dtype=i32, value=7.0}\n  %%e: f32[] = cross_entropy(%%l, %%k)\n  return %%e\n}\n' > fault.graph
failed 5 replay fault.graph

# The error of a plan that does not fit has the numbers and the node of its message, and the place in the model's source.
expect 4 replay m.tape --budget 1KiB --json
python3 - << 'END' || fail "the error of a budget is not as it should be: $(cat out)"
import json
e = json.load(open("out"))
i = e["infeasible"]
assert i["budget_bytes"] == 1024 and 1024 < i["floor_bytes"] <= i["live_bytes"] and i["floor_bytes"] <= i["keep_all_peak_bytes"], i
assert f"the floor is {i['floor_bytes']} bytes" in e["message"] and f"= {i['op']}(" in e["message"] and f"`%{i['node']}" in e["message"]
assert e["kind"] == "InfeasiblePlanError" and e["message"].endswith(f"({e['file']}:{e['line']})"), e
END
# A plan that does not fit is an answer of its own.
expect 4 plan m.tape --budget 1KiB --json; answered '"schema": "tapedeck.plan/1"'; answered '"infeasible": {'; [ "$(number floor_bytes)" -gt 1024 ] || fail "$(cat out)"
expect 4 maxbatch m.tape --batch 4 --memory 1KB --json; answered '"schema": "tapedeck.maxbatch/1"'

# Each time, stdout is exactly the error object, and its message is a line on stderr.
python3 - "$runs" << 'END' || fail "an error under --json is not as it should be"
import json, sys
for k in range(1, int(sys.argv[1]) + 1):
    code, command = open(f"{k}.call").read().split()
    text, lines = open(f"{k}.out").read(), open(f"{k}.err").read().splitlines()
    try:
        error = json.loads(text)
        assert list(error) == ["schema", "command", "code", "message", "kind", "file", "line"] + ["infeasible"] * (code == "4")
        assert error["kind"] in {"2": ["UsageError", "TypeError"], "3": ["FileError"], "4": ["InfeasiblePlanError"], "5": ["ExecutionError"]}[code], error
        assert error["schema"] == "tapedeck.error/1" and error["code"] == int(code)
        assert error["command"] == (None if command in ("nosuch", "--nosuch") else command)
        assert "tapedeck: " + error["message"] in lines
    except (AssertionError, ValueError):
        sys.exit(f"tapedeck {command} --json printed: {text[:300]}\nand on stderr: {lines[:3]}")
END
finish
