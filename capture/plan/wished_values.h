// Which values of a graph the wishes of a user name (wishes.h describes the patterns).
//
//     wishes: keep `h*`, recompute `op:tanh`                   wish_of
//     %h = tanh(%x)                                            1, the later wish
//     %h2 = exp(%h)                                            0
//     %y = neg(%h2)                                            kNone: the planner may choose
#pragma once

#include <tapedeck/capture/plan/wishes.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct WishedValues {
  std::vector<std::int32_t> wish_of;  // by value: the index of the last wish that names it; kNone if none does
  std::vector<std::int32_t> named;    // by wish: the number of values that its pattern names, those of later wishes counted
};

// Patterns of names look at values that have a name; a number that stands for a name does not count, because it changes when
// nodes move. REQUIRES: check_wishes(wishes) does not throw.
WishedValues find_wished(const Graph& graph, const std::vector<Wish>& wishes);

// Throws UsageError if a pattern has no meaning: it is empty, or its kind, its trait or its number of a region does not exist.
void check_wishes(const std::vector<Wish>& wishes);

// The error for a pattern that names nothing in the graph: it says so, and suggests the names that are near.
std::string describe_unmatched(const Graph& graph, const Wish& wish);

// The wishes with those that the program states by marks on its nodes (wishes.h) put before them, unless they are there. A
// graph without marks leaves the list as it is.
std::vector<Wish> with_program_wishes(const Graph& graph, const std::vector<Wish>& wishes);
bool is_of_program(const Wish& wish);  // one of those
Graph without_marks(Graph graph);      // the graph without the marks of the program

// The option of the command line that states such a wish: "--keep h*". Of the program's own: "[keep] in the program".
std::string wish_text(const Wish& wish);

}  // namespace TAPEDECK_API
