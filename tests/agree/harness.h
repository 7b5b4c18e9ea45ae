// The harness runs one program in every way and expects the same bits from each way: the results of every step, and the state
// after it.
//
//   eager again             a second program from the same builder, run eagerly
//   captured                the callable, which records its first two calls and then replays; on one thread and on two
//   node by node            the captured graph through eager dispatch, without a plan
//   planned                 replayed on one thread and on two; twice from the same state; each plan passes the checker
//   budgets                 everything kept, halfway between the floor and that peak, the floor
//   passes                  each pass that changes the program left out in turn; random orders of all passes, some repeated
//   text, file              printed and parsed again; saved and loaded with weights, inputs and plan
//   gradient                generated on the graph of the forward pass, compared with eager backward
//
// The oracle is the eager run of the C++ program, which uses no graph.
#pragma once

#include <tapedeck/tests/agree/program.h>

#include <tapedeck/engine/ir/graph.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::agree {

// A named rewrite of a graph. The result must compute the same values as the graph that it got.
struct NamedPass {
  std::string name;
  std::function<Graph(const Graph&)> run;
};

struct Harness {
  std::uint64_t seed = 1;
  int orders = 8;  // number of random orders of the passes to try
  bool files = true;
  bool plans = true;  // false: without the ways "planned", "budgets" and "each pass left out", which take most of the time
  std::vector<NamedPass> planted = {};  // wrong passes to run and check beside the real ones; the harness must find them
};

struct Verdict {
  enum class Kind { agrees, differs, illegal } kind = Kind::agrees;  // illegal: the program itself throws when run eagerly
  std::string way;                                                   // the way that failed, such as "passes: cse left out"
  std::string what;  // the first difference, such as "step 3, result 1 (f32[4,2]): element 5 is 0.25, not 0.5"
  int ways = 0;      // number of ways compared
  bool agrees() const { return kind == Kind::agrees; }
  std::string text() const { return way + ": " + what; }
};

Verdict check_agreement(const Builder& build, const Harness& harness = {});

// The registered passes, without the passes that change a graph only under an option. Each may stand at any place in an
// order.
const std::vector<NamedPass>& legal_passes();

}  // namespace tapedeck::agree
