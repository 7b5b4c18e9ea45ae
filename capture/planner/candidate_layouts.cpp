#include <tapedeck/capture/planner/candidate_layouts.h>

#include <tapedeck/capture/planner/planning.h>

#include <algorithm>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::int64_t kNearMayCost = 50;  // without a budget, kept addresses may raise the peak by this part of it

}  // namespace

PlacedCandidate CandidateLayouts::lay_out_candidate(const Candidate& candidate, ClonedGraph cloned, const Placing& how) const {
  PlacedCandidate placed{candidate.number, 0, std::move(cloned), {}};
  placed.layout = lay_out(candidate.order->facts, placed.cloned, how);
  placed.peak = candidate.order->facts.external_bytes + placed.layout.arena_bytes;
  return placed;
}

std::int64_t CandidateLayouts::peak(Candidate& candidate) {
  if (candidate.peak >= 0) return candidate.peak;
  watch_.check();
  PlacedCandidate placed = lay_out_candidate(candidate, graph_of(candidate), effort_.greedy(size_of(*candidate.order)));
  if (candidate.is_improved() && placed.peak > candidate.live_peak) search_quickly(candidate, &placed);
  candidate.peak = placed.peak;
  if (!lowest_ || candidate.peak < lowest_->peak) lowest_ = std::move(placed);
  return candidate.peak;
}

// Plans that a search found lie close together in cost, so that a few bytes lost by placement would hand a budget a dearer
// plan.
void CandidateLayouts::search_quickly(const Candidate& candidate, PlacedCandidate* placed) {
  PlacedCandidate searched =
      lay_out_candidate(candidate, placed->cloned, effort_.quick(size_of(*candidate.order), placed->layout));
  watch_.check();
  if (searched.peak < placed->peak) *placed = std::move(searched);
}

std::int64_t CandidateLayouts::searched_peak(Candidate& candidate) {
  if (std::exchange(candidate.searched, true)) return candidate.peak;
  if (peak(candidate) <= candidate.live_peak) return candidate.peak;
  std::optional<PlacedCandidate> greedy = take(candidate);
  if (!greedy) greedy = lay_out_candidate(candidate, graph_of(candidate), effort_.greedy(size_of(*candidate.order)));
  PlacedCandidate searched =
      lay_out_candidate(candidate, std::move(greedy->cloned), effort_.search(size_of(*candidate.order), greedy->layout));
  watch_.check();
  if (searched.peak > candidate.peak || beats_the_floor(searched)) {
    searched.layout = std::move(greedy->layout);
    searched.peak = candidate.peak;
  }
  candidate.peak = searched.peak;
  kept_[candidate.number] = std::move(searched);
  return candidate.peak;
}

void CandidateLayouts::keep_addresses(Candidate& candidate, std::int64_t budget) {
  if (!options_.near || options_.chunk_bytes > 0) return;
  Placing how = effort_.greedy(size_of(*candidate.order));
  how.near = options_.near.get();
  how.cancel = options_.cancel;
  PlacedCandidate placed = lay_out_candidate(candidate, graph_of(candidate), how);
  const bool costs_too_much =
      placed.peak > (budget < 0 ? candidate.peak + candidate.peak / kNearMayCost : std::max(budget, candidate.peak));
  if (!placed.layout.near || beats_the_floor(placed) || costs_too_much) return;
  candidate.peak = placed.peak;
  kept_[candidate.number] = std::move(placed);
}

std::optional<PlacedCandidate> CandidateLayouts::take(const Candidate& candidate) {
  if (auto kept = kept_.extract(candidate.number)) return std::move(kept.mapped());
  if (lowest_ && lowest_->number == candidate.number) return std::exchange(lowest_, std::nullopt);
  return std::nullopt;
}

PlacedCandidate place_candidate(Candidate& candidate, std::int64_t budget, Planning* p) {
  p->layouts.searched_peak(candidate);
  p->layouts.keep_addresses(candidate, budget);
  if (std::optional<PlacedCandidate> kept = p->layouts.take(candidate)) return std::move(*kept);
  PlacedCandidate placed{candidate.number, candidate.peak, graph_of(candidate), {}};
  placed.layout = lay_out(candidate.order->facts, placed.cloned,
                          {.alignment = alignment_of(p->options), .chunk_bytes = p->options.chunk_bytes});
  return placed;
}

}  // namespace tapedeck
