// Every pass by name. A pass registers itself at the end of its own file. `tapedeck opt --list` shows its description, and a
// test checks that `before` becomes `after`.
#pragma once

#include <tapedeck/capture/passes/pass_options.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Pass {
  const char* name = "";
  std::vector<const char*> aliases = {};  // other names that people know it by
  const char* doc = "";                   // one sentence
  const char* before = "";                // a graph ...
  const char* after = "";                 // ... and the graph that the pass makes of it
  Graph (*run)(Graph, const PassOptions&) = nullptr;
  OptimizationLevel level = OptimizationLevel::all;  // the lowest level at which a PassRunner runs it
  bool always = false;                               // the planner cannot do without it, so it runs at every level
  bool asked_for = false;   // does nothing without a choice of the user, and is not in the pipeline by itself
  bool in_regions = true;   // also right for the nested graphs of control flow, so the wrapper takes it there
  PassOptions sample = {};  // the options under which `before` becomes `after`
};

// Passes live for the whole process. Registering happens at start-up; reading is thread safe. Throws UsageError if a name is
// taken.
bool register_pass(Pass pass);
std::vector<const Pass*> all_passes();            // sorted by name
const Pass* find_pass(const std::string& name);   // by name or alias; null if unknown
const Pass& pass_named(const std::string& name);  // throws UsageError "unknown pass 'csee': did you mean 'cse'?"

// Runs the pass on the graph and, if the pass allows it, on the graphs nested in its nodes, innermost first. A region that
// several nodes share stays shared, and a region that does not change stays the same object. Cost: the cost of the pass on all
// of them.
Graph run_pass(const Pass& pass, Graph graph, const PassOptions& options = {});

}  // namespace TAPEDECK_API
