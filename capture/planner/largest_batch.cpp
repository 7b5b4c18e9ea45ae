#include <tapedeck/capture/planner/largest_batch.h>

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostBatch = std::int64_t{1} << 40;

void check_question(const BatchQuestion& question) {
  if (question.memory <= 0) throw UsageError("the memory for a batch must be more than no bytes");
  if (question.fixed < 0) throw UsageError("the fixed bytes cannot be negative");
  if (!(question.cost_limit >= 1)) throw UsageError("a cost limit below 1 asks for less than keeping everything costs");
}

// Bytes that are the same for every batch.
std::int64_t same_for_every_batch(const Graph& graph) {
  std::int64_t bytes = 0;
  for (ValueId s = 0; s < graph.n_state; ++s) bytes += graph.values[graph.n_inputs + s].type.bytes();
  for (const Node& node : graph.nodes)
    if (graph.literal(node)) bytes += graph.values[node.first_output].type.bytes();
  return bytes;
}

// bytes x numerator / denominator, rounded down; the largest number there is if that does not hold it.
std::int64_t scaled(std::int64_t bytes, std::int64_t numerator, std::int64_t denominator) {
  const double about = static_cast<double>(bytes) * static_cast<double>(numerator) / static_cast<double>(denominator);
  if (about > 9e18) return std::numeric_limits<std::int64_t>::max();
  std::int64_t whole = bytes / denominator, rest = bytes % denominator;
  return whole * numerator + static_cast<std::int64_t>(std::floor(static_cast<double>(rest) * static_cast<double>(numerator) /
                                                                  static_cast<double>(denominator)));
}

// Asks for the plans of one graph as if it had other batches: a batch twice as large has half of the memory for each row.
class LinearBatches {
 public:
  LinearBatches(const Graph& graph, std::int64_t batch, const BatchQuestion& question, const PlanOptions& options)
      : batch_(batch), question_(question), same_(same_for_every_batch(graph)), search_(graph, options) {}

  BatchPoint ask(std::int64_t batch) {
    const std::int64_t room = question_.memory - question_.fixed - same_;
    BatchPoint point;
    point.batch = batch;
    if (room < 0) {
      point.obstacle = fmt::format("{} bytes are taken whatever the batch", question_.fixed + same_);
      return point;
    }
    const Plan plan = search_.plan(same_ + scaled(room, batch_, batch));
    point.peak_bytes = question_.fixed + same_ + scaled(plan.peak_bytes - same_, batch, batch_);
    point.cost_ratio = plan.recompute_cost_ratio();
    judge(plan, question_, &point);
    return point;
  }

  // The batch whose rows fill the room at this peak of the graph's own batch.
  std::int64_t batch_at(std::int64_t peak) const {
    const std::int64_t room = std::max<std::int64_t>(question_.memory - question_.fixed - same_, 0);
    return std::min(scaled(room, batch_, std::max<std::int64_t>(peak - same_, 1)), kMostBatch);
  }
  std::int64_t keep_all_batch() const { return batch_at(search_.keep_all_peak()); }
  std::int64_t most() const { return batch_at(search_.floor()) + 1; }

  static void judge(const Plan& plan, const BatchQuestion& question, BatchPoint* point) {
    if (!plan.feasible)
      point->obstacle = fmt::format("it needs {} bytes at least", point->peak_bytes);
    else if (point->cost_ratio > question.cost_limit)
      point->obstacle = fmt::format("it costs {:.4f} of keeping everything", point->cost_ratio);
    point->fits = point->obstacle.empty();
  }

 private:
  std::int64_t batch_;
  BatchQuestion question_;
  std::int64_t same_;
  PlanSearch search_;
};

}  // namespace

LargestBatch largest_batch(std::int64_t guess, std::int64_t most, const std::function<BatchPoint(std::int64_t)>& ask) {
  LargestBatch found;
  found.next.batch = most + 1;
  found.next.obstacle = fmt::format("batches above {} were not tried", most);
  const auto take = [&](std::int64_t batch) {
    BatchPoint point = ask(batch);
    const bool fits = point.fits;
    (fits ? found.best : found.next) = std::move(point);
    return fits;
  };
  // Steps away from the guess, each twice as long, until the answer lies between two batches.
  std::int64_t at = std::clamp<std::int64_t>(guess, 1, most);
  const bool up = take(at);
  for (std::int64_t step = 1; at >= 1 && at <= most; step *= 2) {
    if (up ? at == most : at == 1) break;
    at = up ? std::min(at + step, most) : std::max<std::int64_t>(at - step, 1);
    if (take(at) != up) break;
  }
  while (found.next.batch - found.best.batch > 1) take(found.best.batch + (found.next.batch - found.best.batch) / 2);
  return found;
}

LargestBatch largest_batch(const Graph& graph, std::int64_t batch, const BatchQuestion& question, const PlanOptions& options) {
  check_question(question);
  if (batch < 1) throw UsageError(fmt::format("a step has 1 row at least, not {}", batch));
  LinearBatches batches(graph, batch, question, options);
  LargestBatch found =
      largest_batch(batches.keep_all_batch(), batches.most(), [&](std::int64_t rows) { return batches.ask(rows); });
  found.keep_all_batch = batches.keep_all_batch();
  return found;
}

BatchPoint batch_point(std::int64_t batch, const Plan& plan, const BatchQuestion& question) {
  check_question(question);
  BatchPoint point;
  point.batch = batch;
  point.peak_bytes = question.fixed + plan.peak_bytes;
  point.cost_ratio = plan.recompute_cost_ratio();
  LinearBatches::judge(plan, question, &point);
  return point;
}

}  // namespace tapedeck
