#!/usr/bin/env bash
# run compiles a script against the library of this build, and runs it; the same script again is not compiled. Each compile of the
# library's header costs a second or more, so that a script here includes it only where it needs it.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
unset CXX TAPEDECK_SAVE_STEP
rm -rf cache bin no; rm -f ./*.cpp ./*.h ./*.tape; mkdir cache; export XDG_CACHE_HOME=$PWD/cache
programs() { find cache/tapedeck/run -name '*-*' -type f 2> /dev/null | wc -l; }
compiled() { said 'compiling '; }
reused() { quiet; }

# Words, streams and the exit code are the script's, also words that the tool knows.
cat > echo.cpp << 'END'
#include "a part.h"
#include <cstdio>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("[%s]", argv[i]);
  for (int c; (c = std::getchar()) != EOF;) std::putchar(c);
  std::fputs(kText, stderr);
  return argc;
}
END
echo 'inline const char* kText = "";' > 'a part.h'
expect 3 run echo.cpp --json 'a b' < /dev/null; answered '[--json][a b]'; compiled
[ "$(wc -l < out)" = 0 ] || fail "more than the script's words: $(cat out)"
echo piped | "$tool" run echo.cpp -q --help --flag x -- > out 2> err; [ $? = 6 ] || fail "the exit code of a script with five words"
answered '[-q][--help][--flag][x][--]piped'; reused
# A changed header is another program; the old header is compiled again or found, and says its own text.
echo 'inline const char* kText = "other";' > 'a part.h'; expect 1 run echo.cpp < /dev/null; compiled; said other
expect 1 run -q echo.cpp < /dev/null; [ "$(cat err)" = other ] || fail "with -q it prints $(cat err)"
# Other flags, and -v.
expect 1 run -v --flag=-O0 --flag=-DX=1 echo.cpp < /dev/null; said ' -O0 -DX=1'; said 'tapedeck: compiling: '
[ "$(programs)" = 3 ] || fail "there are $(programs) programs, not 3"
[ -z "$(find cache/tapedeck/run -name '.*')" ] || fail "left: $(find cache/tapedeck/run -name '.*')"

# Errors of the compiler show the script's lines; nothing is kept. A script that a signal ends.
printf 'int main() {\n  return nosuch;\n}\n' > wrong.cpp
expect 3 run wrong.cpp; said 'wrong.cpp:2'; said 'return nosuch'; said 'tapedeck: wrong.cpp: it does not compile'
printf '#include <csignal>\nint main() { std::raise(SIGKILL); }\n' > killed.cpp
expect 137 run killed.cpp; said 'killed.cpp was ended by signal 9'
expect 3 run missing.cpp; said 'missing.cpp: cannot read'; expect 3 run .; said 'it is no file'
printf 'int\0main' > program.bin; expect 3 run program.bin; said 'no C++ script, because it has a zero byte'; [ "$(wc -l < err)" = 1 ] || fail "it was compiled"
expect 2 run; said 'FILE.cpp is missing'; expect 2 run --nosuch echo.cpp; said 'run has no option --nosuch'
[ "$(programs)" = 4 ] || fail "there are $(programs) programs, not 4"

# CXX: words are split, no shell sees them, and another compiler is another program.
CXX='no such; touch shelled' expect 6 run echo.cpp < /dev/null; said "the C++ compiler 'no' cannot be run"; absent shelled
cat > other.sh << 'END'
#!/bin/sh
[ "$2" = --version ] && { echo other 1; exit; }
shift; echo 'via other' >&2; exec c++ "$@"
END
chmod +x other.sh
printf 'int main() { return 7; }\n' > seven.cpp
CXX="$PWD/other.sh word" expect 7 run seven.cpp; said 'via other'; CXX="$PWD/other.sh word" expect 7 run seven.cpp; reused

# Two at once, in an empty cache: both run, one program stays.
rm -rf cache/tapedeck
"$tool" run -q seven.cpp & one=$!
"$tool" run -q seven.cpp & two=$!
wait $one; [ $? = 7 ] || fail "the first of two"; wait $two; [ $? = 7 ] || fail "the second of two"
[ "$(programs)" = 1 ] || fail "two runs at once left $(programs) programs"

# Signals go to the script: it ends by itself, and the tool has its exit code.
printf '#include <csignal>\n#include <cstdlib>\n#include <unistd.h>\nint main() { std::signal(SIGTERM, [](int) { std::_Exit(9); }); write(1, "up", 2); for (;;) pause(); }\n' > waits.cpp
"$tool" run -q waits.cpp > out 2> err & pid=$!
for ((tries = 0; tries < 600; ++tries)); do [ -s out ] && break; sleep 0.1; done
kill -TERM $pid; wait $pid; code=$?; [ $code = 9 ] || fail "after SIGTERM the tool exits $code"

# Old programs are removed: 100 stay.
for ((i = 0; i < 120; ++i)); do touch -d '2020-01-01' "cache/tapedeck/run/$i-old" "cache/tapedeck/run/$i.inputs"; done
echo '// again' >> seven.cpp; expect 7 run seven.cpp; compiled
[ "$(programs)" -le 101 ] || fail "$(programs) programs stay"
expect 7 run seven.cpp; reused

# A cache that others may write to is refused, before anything runs.
chmod g+w cache/tapedeck/run; expect 3 run seven.cpp; said 'others may write to this folder'; chmod g-w cache/tapedeck/run
chmod o+w cache/tapedeck; expect 3 run seven.cpp; said 'others may write to this folder'; chmod o-w cache/tapedeck
expect 7 run seven.cpp
(unset XDG_CACHE_HOME HOME; "$tool" run seven.cpp 2> err; [ $? = 3 ]) || fail "without a home"; said 'XDG_CACHE_HOME'

# --view: the step that the script captured is in the file that the viewer gets. A script beside the tool stands for the viewer.
cat > step.cpp << 'END'
#include <tapedeck/tapedeck.h>
using namespace tapedeck;
int main(int argc, char**) {
  if (argc > 1) return 4;
  CapturedStep step = capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{relu(in[0])}; }, {.input_names = {"apples"}});
  for (int i = 0; i < 3; ++i) step({tensor({1, -2})});
}
END
mkdir bin; cp "$tool" bin/tapedeck
printf '#!/bin/sh\ncp "$1" "%s/seen.tape"; echo "viewer $1"\n' "$PWD" > bin/tapedeck-viewer; chmod +x bin/tapedeck-viewer
real=$tool; tool=$PWD/bin/tapedeck
expect 0 run --view step.cpp; answered 'viewer '; absent "$(sed 's/viewer //' out)"
tool=$real; expect 0 info seen.tape; answered apples; answered 'plan: '; tool=$PWD/bin/tapedeck
expect 4 run --view step.cpp further; said 'there is no step to view'
rm bin/tapedeck-viewer; expect 6 run --view step.cpp; said 'tapedeck-viewer'
tool=$real
# The variable by itself: a name of another kind is refused, and a failure is a warning.
TAPEDECK_SAVE_STEP=$PWD/kept.txt expect 0 run -q step.cpp; said 'must end in .tape'; absent kept.txt
TAPEDECK_SAVE_STEP=$PWD/no/such.tape expect 0 run -q step.cpp; said 'warning: TAPEDECK_SAVE_STEP'
TAPEDECK_SAVE_STEP=$PWD/kept.tape expect 0 run -q step.cpp; quiet; expect 0 verify kept.tape
finish
