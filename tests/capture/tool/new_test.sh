#!/usr/bin/env bash
# new writes a project and writes over nothing. The test outside_project builds and runs one.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf first other

expect 0 new first; quiet; answered "wrote first/CMakeLists.txt"; answered "-DCMAKE_PREFIX_PATH="
[ "$(ls first | tr '\n' ' ')" = "CMakeLists.txt README.md main.cpp " ] || fail "first holds $(ls first)"
grep -q 'project(first LANGUAGES CXX)' first/CMakeLists.txt || fail "$(cat first/CMakeLists.txt)"
grep -q 'step.save("first.tape")' first/main.cpp || fail "$(cat first/main.cpp)"
# The program is the sample, but for the name of the file that it writes.
sed 's/first\.tape/step.tape/g' first/main.cpp | cmp - "$(dirname "${BASH_SOURCE[0]}")/../../../samples/02_replay.cpp" || fail "the program is not the sample"
! grep -rq '@NAME@' first || fail "a mark was left: $(grep -r '@NAME@' first)"

echo mine > first/main.cpp
expect 3 new first; said "first: it is there already; give a name"
grep -qx mine first/main.cpp || fail "the program was written over"
mkdir other; expect 0 new other/second/; grep -q 'project(second' other/second/CMakeLists.txt || fail "$(ls other)"
expect 0 new other/third --json; answered '"project": "third"'; answered '"folder": "other/third"'
expect 3 new no/such/folder; said "cannot make the folder"; absent no
for wrong in '' . .. 'two words' 1st 'a;b' test '$x' "x'y"; do expect 2 new "$wrong"; done; said "cannot name a project"
expect 2 new; said "NAME is missing"
finish
