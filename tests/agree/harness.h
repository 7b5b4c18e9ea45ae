// Every way of running a program must give the same bits, in every step: results, and state left behind.
//
//   eager again             a twin, made and run anew
//   captured                the callable, which records twice and replays; on one thread and on two
//   node by node            the captured graph through eager dispatch, unplanned
//   planned                 replayed, on one thread and two; twice from the same state; with every checked plan
//   budgets                 keep-all, halfway between floor and keep-all, the floor
//   passes                  each left out in turn; random orders of all of them, some repeated
//   text, file              printed and parsed; saved and loaded, with weights, inputs and plan
//   gradient                generated on the graph of the forward pass, against eager backward
//
// The oracle is the eager run of the program itself, in C++, with no graph in sight.
#pragma once

#include <tapedeck/tests/agree/program.h>

#include <tapedeck/engine/ir/graph.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::agree {

// A pass as the harness sees it: a graph, and a graph that must compute the same.
struct NamedPass {
  std::string name;
  std::function<Graph(const Graph&)> run;
};

struct Harness {
  std::uint64_t seed = 1;
  int orders = 8;  // random orders of the passes
  bool files = true;
  std::vector<NamedPass> planted = {};  // run and checked besides the real ones: to see the harness catch a wrong one
};

struct Verdict {
  enum class Kind { agrees, differs, illegal } kind = Kind::agrees;  // illegal: the program itself throws when run eagerly
  std::string way;                                                   // "passes: cse left out"
  std::string what;  // "step 3, result 1 (f32[4,2]): element 5 is 0.25, not 0.5"
  int ways = 0;      // how many were compared
  bool agrees() const { return kind == Kind::agrees; }
  std::string text() const { return way + ": " + what; }
};

Verdict check_agreement(const Builder& build, const Harness& harness = {});

// The registered passes, less those that do nothing unasked; each is legal at any place in an order.
const std::vector<NamedPass>& legal_passes();

}  // namespace tapedeck::agree
