// Every pass by name. A pass registers itself at the end of its own file; what it says of itself is what `tapedeck opt --list`
// shows and what a test holds it to.
#pragma once

#include <tapedeck/capture/passes/pass_options.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Pass {
  const char* name = "";
  std::vector<const char*> aliases = {};  // other names people know it by
  const char* doc = "";                   // one sentence
  const char* before = "";                // a graph ...
  const char* after = "";                 // ... and what becomes of it
  Graph (*run)(Graph, const PassOptions&) = nullptr;
  bool always = false;      // the planner cannot do without it
  bool asked_for = false;   // does nothing without a choice of the user's; not in the pipeline by itself
  bool in_regions = true;   // right for the nested graphs of control flow as well: the wrapper takes it there
  PassOptions sample = {};  // the options under which `before` becomes `after`
};

// Passes live for the whole process. Registering happens at start-up; reading is thread safe. Throws UsageError if a name is
// taken.
bool register_pass(Pass pass);
std::vector<const Pass*> all_passes();            // sorted by name
const Pass* find_pass(const std::string& name);   // by name or alias; null if unknown
const Pass& pass_named(const std::string& name);  // throws UsageError "unknown pass 'csee': did you mean 'cse'?"

// The pass on the graph and, if it may, on the graphs nested in its nodes, innermost first. A region that nodes share stays
// shared, one that does not change stays the same object. O(what the pass takes for all of them).
Graph run_pass(const Pass& pass, Graph graph, const PassOptions& options = {});

}  // namespace TAPEDECK_API
