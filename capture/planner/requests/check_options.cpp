#include <tapedeck/capture/planner/requests/check_options.h>

#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cstdint>

namespace tapedeck {

namespace {
constexpr std::int32_t kMostThreads = 4096;
}

void check_options(const PlanOptions& o) {
  const std::int64_t alignment = alignment_of(o);
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0 || alignment > (std::int64_t{1} << 30))
    throw UsageError(fmt::format("alignment must be a power of two from 1 to 2^30, not {}", o.alignment));
  if (o.chunk_bytes < 0 || o.chunk_bytes > std::int64_t{1} << 60)
    throw UsageError(fmt::format("a chunk holds something, not {} bytes", o.chunk_bytes));
  if (o.budget < -1) throw UsageError(fmt::format("a budget cannot be negative: {}", o.budget));
  if (o.budget_percent != -1 && !(o.budget_percent >= 0 && o.budget_percent <= 1e6))
    throw UsageError(fmt::format("a budget of {} percent makes no sense", o.budget_percent));
  if (o.budget >= 0 && o.budget_percent >= 0) throw UsageError("give the budget in bytes or in percent, not both");
  if (!(o.segment_us >= 0)) throw UsageError(fmt::format("segment_us must not be negative, not {}", o.segment_us));
  if (o.threads < 1 || o.threads > kMostThreads)
    throw UsageError(fmt::format("a plan is for 1 to {} threads, not {}", kMostThreads, o.threads));
  if (!(o.dispatch_us >= 0 && o.dispatch_us <= 1e6))
    throw UsageError(fmt::format("dispatch_us of {} makes no sense", o.dispatch_us));
  if (o.level > OptimizationLevel::fused)
    throw UsageError(fmt::format("level is 0, 1, 2 or 3, not {}", static_cast<int>(o.level)));
  if (o.place_work < -1) throw UsageError(fmt::format("place_work cannot be negative: {}", o.place_work));
  if (o.strategy != Strategy::none && o.strategy != Strategy::automatic && !find_strategy(o.strategy))
    throw UsageError("PlanOptions::strategy is no registered strategy");
  check_wishes(o.wishes);
  if (!(o.parallel_peak >= 1 && o.parallel_peak <= 1e6))
    throw UsageError(fmt::format("parallel_peak must be at least 1, not {}", o.parallel_peak));
}

}  // namespace tapedeck
