// The executors of a captured step with named dimensions: one graph for all sizes, and an executor for each size in use.
//
//     recorded at b = 4, b = 8     how the graph follows b is solved (dim_rules.h)
//     planned once, at b = 64      the largest declared size
//     called with b = 10           that plan fitted to b = 10 (planner/fit_plan_to_sizes.h), on the same memory
//
// Executors are kept by size; the least recently used goes first. If a dimension has no upper bound, or the plan does not serve
// every size, each size has a plan of its own. If the recordings do not tell how the graph follows the sizes, a size that was
// recorded twice is replayed at that size alone.
//
// Sizes are never rounded up: padding would change results.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/sizes/dim_rules.h>
#include <tapedeck/capture/sizes/dim_table.h>
#include <tapedeck/kernels/export.h>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// By input name: the dimension of each axis, as in {"b", "", "s"}. An axis with an empty name has a plain size.
using InputDims = std::map<std::string, std::vector<std::string>>;

struct DimOptions {
  std::vector<DimRange> ranges;
  InputDims inputs;
  std::size_t capacity = 16;   // executors kept
  std::size_t recordings = 2;  // least number of different recorded sizes before one graph serves all sizes
  bool empty() const { return inputs.empty(); }
};

struct BucketStats {
  std::int64_t hits = 0, misses = 0;     // an executor was there, or had to be made
  std::int64_t fitted = 0, planned = 0;  // how it was made: from the upper-bound plan, or by planning
  std::int64_t evicted = 0;
  double make_ms = 0;  // all misses together
};

class DimBuckets {
 public:
  // Throws UsageError for a dimension named by an input and not declared, declared twice, or with an empty range.
  DimBuckets(DimOptions dims, PlanOptions plan, ExecutorOptions executor);
  ~DimBuckets();
  DimBuckets(DimBuckets&&) noexcept;

  // The sizes that these inputs have. Throws TypeError that names the dimension, the inputs and the range.
  Sizes sizes_of(const std::map<std::string, Type>& inputs) const;

  // Adds a recording at these sizes. If it differs from the recordings before in more than sizes, there is no one graph for all
  // sizes, and explain() names the difference; that is no error. The executors that were handed out before are dropped here.
  void add(const Graph& graph, const Sizes& sizes);
  // The executor for these sizes, its state not bound; null if another recording is needed. It is kept here as long as the
  // capacity allows.
  std::shared_ptr<Executor> find(const Sizes& sizes);

  // The graph at these sizes: the one that an executor of find() replays.
  Graph graph_at(const Sizes& sizes) const;
  const DimTable& table() const;
  bool general() const;  // one graph for all sizes
  const BucketStats& stats() const;
  std::string explain() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace TAPEDECK_API
