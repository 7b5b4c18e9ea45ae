// The one wrapper that runs every pass: skips it if disabled, times it, verifies what it made, dumps the graph if it changed,
// and says what was won.
//
//     TAPEDECK_DISABLE_PASSES=cse,dead_code   leaves these out (passes that the planner cannot do without run anyway)
//     TAPEDECK_DUMP=DIR                       DIR/01-dead_code.graph, ... whenever a pass changed something
//     TAPEDECK_DEBUG=1                        one line to stderr per pass: nodes before -> after, milliseconds
#pragma once

#include <tapedeck/engine/graph.h>
#include <tapedeck/engine/settings.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct PassRecord {
  std::string name;
  double ms = 0;
  NodeId nodes_before = 0, nodes_after = 0;
  bool skipped = false;
};

class PassRunner {
 public:
  PassRunner();  // reads the environment

  enum class Need { optional, always };
  // Throws InvalidGraphError that names the pass if its result does not verify.
  Graph run(const char* name, Graph graph, const std::function<Graph(Graph)>& pass, Need need = Need::optional);
  const std::vector<PassRecord>& records() const { return records_; }

 private:
  bool disabled(const std::string& name) const;
  void dump(const std::string& name, const std::string& text);

  Settings settings_;
  int dumped_ = 0;
  std::vector<PassRecord> records_;
};

}  // namespace TAPEDECK_API
