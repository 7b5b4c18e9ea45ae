// The one wrapper that runs every pass. It skips a disabled pass, measures the time, verifies the result, dumps the graph if it
// changed, and says how much was saved. It takes passes into the nested graphs of control flow (registry.h). The planner looks
// at the last graph alone (Looks::at_none), because a program waits for it.
//
//     TAPEDECK_DISABLE_PASSES=cse,dead_code   leaves these out (passes that the planner cannot do without run anyway;
//                                            a name that no pass has is a UsageError)
//     TAPEDECK_DUMP=DIR                       DIR/01-dead_code.graph, ... whenever a pass changed something
//     TAPEDECK_DEBUG=1                        one line to stderr per pass: nodes before -> after, milliseconds
#pragma once

#include <tapedeck/capture/passes/pass_options.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/graph.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The number of nodes of a graph, those in its regions included.
std::int64_t nodes_with_regions(const Graph& graph);

struct PassRecord {
  std::string name;
  double ms = 0;
  std::int64_t nodes_before = 0, nodes_after = 0;  // those in regions included
  std::int64_t bytes_before = 0,
               bytes_after = 0;  // most bytes alive at once in the graph's order (analysis/live_peak.h); 0 if nobody looked
  bool skipped = false;
};

// At which graphs the runner looks for types, invariants and live bytes. The time and the number of nodes are noted in any
// case.
enum class Looks { at_each, at_none };

class PassRunner {
 public:
  explicit PassRunner(PassOptions options = {},
                      Looks looks = Looks::at_each);  // reads the environment; TAPEDECK_DEBUG looks at each

  // A registered pass; a pass of a higher level than PassOptions::level is left out, without a record. Throws UsageError for a
  // name that no pass has.
  Graph run(const char* name, Graph graph);
  // Whether TAPEDECK_DISABLE_PASSES may leave a step out.
  enum class Need { optional, always };
  // Runs a step of the pipeline that is no registered pass. Throws InvalidGraphError that names the step if its result does not
  // verify; with Looks::at_none nothing is verified.
  Graph run(const char* name, Graph graph, const std::function<Graph(Graph)>& pass, Need need = Need::optional);
  // From now on, calls `seen` with the name and the result of every step that was not skipped.
  void watch(std::function<void(const std::string&, const Graph&)> seen) { seen_ = std::move(seen); }
  // From now on, run() throws Cancelled if the flag is up before a pass or after it. The flag outlives the runner.
  void cancel_by(const std::atomic<bool>* flag) { cancel_ = flag; }
  const std::vector<PassRecord>& records() const { return records_; }
  const PassOptions& options() const { return options_; }

 private:
  bool disabled(const std::string& name) const;
  void check_cancel() const;
  std::int64_t bytes_of(const Graph& graph) const;
  void dump(const std::string& name, const std::string& text);

  PassOptions options_;
  Settings settings_;
  Looks looks_;
  std::function<void(const std::string&, const Graph&)> seen_;
  const std::atomic<bool>* cancel_ = nullptr;
  int dumped_ = 0;
  std::vector<PassRecord> records_;
};

}  // namespace TAPEDECK_API
