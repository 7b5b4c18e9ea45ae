// The largest batch with which a training step fits into some memory, and recomputation costs no more than a limit.
//
//     batch        16        32        48        64
//     cost        1.00      1.09      1.28        -          memory 16 GB, cost at most 1.33: the answer lies between 48 and 64
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <string>

namespace tapedeck TAPEDECK_API {

struct BatchQuestion {
  std::int64_t memory = 0;   // bytes that the step may hold
  std::int64_t fixed = 0;    // bytes of these that are taken whatever the batch, beside what the graph itself keeps
  double cost_limit = 1.33;  // the cost of the plan over that of keeping everything; at least 1
};

// A plan for one batch.
struct BatchPoint {
  std::int64_t batch = 0;
  bool fits = false;            // the memory and the limit
  std::int64_t peak_bytes = 0;  // `fixed` counted
  double cost_ratio = 1;
  std::string obstacle;  // one sentence; empty if it fits
};

struct LargestBatch {
  BatchPoint best;                   // batch 0: not even a batch of 1 fits, and `next` says why
  BatchPoint next;                   // one more
  std::int64_t keep_all_batch = -1;  // the largest that fits with nothing recomputed; -1: not worked out
};

// The largest batch in 1..most that fits, and its neighbour. `ask` gives the point of a batch. Larger batches are taken to fit
// only where smaller ones do; O(log batch) questions, the first of them at `guess`.
LargestBatch largest_batch(std::int64_t guess, std::int64_t most, const std::function<BatchPoint(std::int64_t)>& ask);

// For a graph of a step with `batch` rows, where bytes and microseconds are taken to grow linearly with the batch; but for
// state and constants, which are the same for every batch. One search answers for all batches (plan_search.h). `options` name
// no budget. Throws UsageError for a question that makes no sense, and as make_plan.
LargestBatch largest_batch(const Graph& graph, std::int64_t batch, const BatchQuestion& question,
                           const PlanOptions& options = {});

// The point of a plan that was made for `question.memory - question.fixed` bytes.
BatchPoint batch_point(std::int64_t batch, const Plan& plan, const BatchQuestion& question);

}  // namespace TAPEDECK_API
