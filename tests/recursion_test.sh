#!/usr/bin/env bash
# .ci/check_recursion finds a cycle of calls in one file, over two files and through a destructor, lets a listed function bound it, and refuses a line
# of the list that no cycle needs.
set -uo pipefail
check=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.ci/check_recursion
failures=0
fail() { printf 'FAILED: %s\n' "$*"; failures=$((failures + 1)); }
judge() { printf '%s\n' "$@" > list; python3 "$check" . list > out 2>&1; }
finds() { grep -qE "^$1\$" out || fail "it does not find $1: $(cat out)"; }

mkdir -p lib
cat > one.cpp << 'END'
#include <map>
#include <memory>
#include <vector>
namespace tapedeck {
struct Tree {
  std::vector<std::unique_ptr<Tree>> kids;
  int number = 0;
};
struct Walk {
  int depth(const Tree& tree) { return tree.kids.empty() ? 0 : 1 + depth(*tree.kids[0]) * tree.number; }
};
int there(const Tree& tree);
int here(const Tree& tree) { return tree.kids.empty() ? 0 : 1 + there(*tree.kids[0]) * tree.number; }
int depth(const Tree& tree) { return Walk().depth(tree); }
int loop(int n) { return n == 0 ? 0 : depth(Tree()) + n; }
int sum(const std::map<int, int>& numbers) {
  std::map<int, int> copy = numbers;
  return static_cast<int>(copy.size());
}
void drop(std::unique_ptr<Tree>* tree) { tree->reset(); }
}  // namespace tapedeck
END
cat > two.cpp << 'END'
namespace tapedeck {
struct Tree;
int here(const Tree& tree);
int there(const Tree& tree) { return here(tree) + 1; }
}  // namespace tapedeck
END
c++ -std=c++20 -O0 -shared -fPIC one.cpp two.cpp -o lib/libtapedeck.so || fail "it does not compile"

judge "# an empty list" && fail "it passes without a list"
finds "Walk::depth"
finds "(here -> there|there -> here)"
finds ".*Tree::~Tree.*"
grep -qE "loop|sum|_Rb_tree" out && fail "it finds what calls itself not at all, or by halves: $(cat out)"

bounds=("Walk::depth  # a bound" "here  # a bound" "Tree::~Tree  # a bound")
judge "${bounds[@]}" || fail "three bounds are not enough: $(cat out)"
judge "${bounds[@]:1}" && fail "it passes without one of the bounds"
judge "${bounds[@]}" "there  # a bound" && fail "it passes with two bounds for one cycle"
judge "${bounds[@]}" "loop  # a bound" && fail "it passes with a line for what calls itself not"
finds "loop"
judge "${bounds[@]}" "gone  # a bound" && fail "it passes with a line for no function"
finds "gone"
judge "${bounds[@]:0:2}" "Tree::~Tree" && fail "it passes with a line without a bound"
((failures == 0)) && echo "all checks passed"
exit $((failures > 0))
