#include <tapedeck/capture/planner/candidate_layouts.h>

#include <algorithm>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::int64_t kNearMayCost = 50;  // without a budget, kept addresses may raise the peak by this part of it
constexpr std::size_t kMostRecent = 8;     // layouts that are kept for the next budgets
constexpr std::int64_t kPartsOfTrial = 4;  // a trial is this part of a search

}  // namespace

void CandidateLayouts::lay_out_again(const Candidate& candidate, const Placing& how, PlacedCandidate* placed) const {
  const Facts& facts = candidate.order->facts;
  placed->layout = lay_out(facts, placed->cloned, how);
  placed->peak = facts.external_bytes + placed->layout.arena_bytes;
}

PlacedCandidate CandidateLayouts::greedy(const Candidate& candidate) const {
  if (lowest_ && lowest_->number == candidate.number) return *lowest_;
  PlacedCandidate placed{candidate.number, 0, graph_of(candidate), {}};
  lay_out_again(candidate, effort_.greedy(size_of(*candidate.order)), &placed);
  return placed;
}

// Plans that a search found lie close together in cost, so that a few bytes lost by placement would hand a budget a dearer
// plan: they get a short search.
PlacedCandidate CandidateLayouts::first(const Candidate& candidate) const {
  if (const auto tried = tried_.find(candidate.number); tried != tried_.end()) return tried->second;
  PlacedCandidate placed = greedy(candidate);
  if (!candidate.is_improved() || placed.peak <= candidate.live_peak) return placed;
  PlacedCandidate searched = placed;
  lay_out_again(candidate, effort_.quick(size_of(*candidate.order), placed.layout), &searched);
  watch_.check();
  return searched.peak < placed.peak ? searched : placed;
}

std::int64_t CandidateLayouts::peak(Candidate& candidate) {
  if (candidate.peak >= 0) return candidate.peak;
  watch_.check();
  PlacedCandidate placed = first(candidate);
  candidate.peak = placed.peak;
  if (!lowest_ || candidate.peak < lowest_->peak) lowest_ = std::move(placed);
  return candidate.peak;
}

// One of `parts` of the work of a search.
PlacedCandidate CandidateLayouts::search(const Candidate& candidate, std::int64_t parts) const {
  PlacedCandidate placed = first(candidate);
  if (placed.peak <= candidate.live_peak) return placed;
  const PlacedCandidate start{placed.number, placed.peak, {}, std::move(placed.layout)};
  Placing how = effort_.search(size_of(*candidate.order), start.layout);
  how.work /= parts;
  lay_out_again(candidate, how, &placed);
  watch_.check();
  if (placed.peak <= start.peak && !beats_the_floor(placed.peak)) return placed;
  return {start.number, start.peak, std::move(placed.cloned), start.layout};
}

std::int64_t CandidateLayouts::searched_peak(Candidate& candidate) {
  if (std::exchange(candidate.searched, true)) return candidate.peak;
  peak(candidate);
  PlacedCandidate placed = search(candidate, 1);
  candidate.peak = placed.peak;
  kept_[candidate.number] = std::move(placed);
  return candidate.peak;
}

std::int64_t CandidateLayouts::tried_peak(Candidate& candidate) {
  if (candidate.searched || tried_.contains(candidate.number)) return candidate.peak;
  peak(candidate);
  PlacedCandidate placed = search(candidate, kPartsOfTrial);
  candidate.peak = placed.peak;
  tried_.emplace(candidate.number, std::move(placed));
  return candidate.peak;
}

const PlacedCandidate& CandidateLayouts::laid_out(const Candidate& candidate, bool searched) {
  if (const auto kept = kept_.find(candidate.number); kept != kept_.end()) return kept->second;
  for (const Recent& recent : recent_)
    if (recent.placed.number == candidate.number && recent.searched == searched) return recent.placed;
  recent_.push_back({searched, searched ? search(candidate, 1) : first(candidate)});
  if (recent_.size() > kMostRecent) recent_.pop_front();
  return recent_.back().placed;
}

std::int64_t CandidateLayouts::placed_peak(const Candidate& candidate) {
  const auto known = placed_peaks_.find(candidate.number);
  if (known != placed_peaks_.end()) return known->second;
  return placed_peaks_[candidate.number] = laid_out(candidate, true).peak;
}

void CandidateLayouts::keep_addresses(const Candidate& candidate, std::int64_t budget, PlacedCandidate* placed) const {
  if (!options_.near || options_.chunk_bytes > 0) return;
  Placing how = effort_.greedy(size_of(*candidate.order));
  how.near = options_.near.get();
  how.cancel = options_.cancel;
  PlacedCandidate near = *placed;
  lay_out_again(candidate, how, &near);
  const std::int64_t most = budget < 0 ? placed->peak + placed->peak / kNearMayCost : std::max(budget, placed->peak);
  if (near.layout.near && !beats_the_floor(near.peak) && near.peak <= most) *placed = std::move(near);
}

PlacedCandidate CandidateLayouts::place(const Candidate& candidate, std::int64_t budget, bool searched) {
  PlacedCandidate placed = laid_out(candidate, searched);
  keep_addresses(candidate, budget, &placed);
  return placed;
}

}  // namespace tapedeck
