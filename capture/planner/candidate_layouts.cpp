#include <tapedeck/capture/planner/candidate_layouts.h>

#include <algorithm>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::int64_t kNearMayCost = 50;  // the peak by this, where no budget says what it may cost

StepSize size_of(const Offer& offer) {
  return {offer.line->graph.nodes.size(), offer.line->graph.values.size(), offer.line->facts.keep_all_cost};
}

}  // namespace

PlacedOffer OfferLayouts::lay_out_offer(const Offer& offer, ClonedGraph cloned, const Placing& how) const {
  PlacedOffer placed{offer.number, 0, std::move(cloned), {}};
  placed.layout = lay_out(offer.line->facts, placed.cloned, how);
  placed.peak = offer.line->facts.external_bytes + placed.layout.arena_bytes;
  return placed;
}

std::int64_t OfferLayouts::peak(Offer& offer) {
  if (offer.peak >= 0) return offer.peak;
  watch_.check();
  PlacedOffer placed = lay_out_offer(offer, graph_of(offer), effort_.greedy(size_of(offer)));
  offer.peak = placed.peak;
  if (!lowest_ || offer.peak < lowest_->peak) lowest_ = std::move(placed);
  return offer.peak;
}

std::int64_t OfferLayouts::searched_peak(Offer& offer) {
  if (std::exchange(offer.searched, true)) return offer.peak;
  if (peak(offer) <= offer.live_peak) return offer.peak;
  std::optional<PlacedOffer> greedy = take(offer);
  if (!greedy) greedy = lay_out_offer(offer, graph_of(offer), effort_.greedy(size_of(offer)));
  PlacedOffer searched = lay_out_offer(offer, std::move(greedy->cloned), effort_.search(size_of(offer), greedy->layout));
  watch_.check();
  if (searched.peak > offer.peak || beats_the_floor(searched)) {
    searched.layout = std::move(greedy->layout);
    searched.peak = offer.peak;
  }
  offer.peak = searched.peak;
  kept_[offer.number] = std::move(searched);
  return offer.peak;
}

void OfferLayouts::keep_addresses(Offer& offer, std::int64_t budget) {
  if (!options_.near || options_.chunk_bytes > 0) return;
  Placing how = effort_.greedy(size_of(offer));
  how.near = options_.near.get();
  how.cancel = options_.cancel;
  PlacedOffer placed = lay_out_offer(offer, graph_of(offer), how);
  const bool costs_too_much =
      placed.peak > (budget < 0 ? offer.peak + offer.peak / kNearMayCost : std::max(budget, offer.peak));
  if (!placed.layout.near || beats_the_floor(placed) || costs_too_much) return;
  offer.peak = placed.peak;
  kept_[offer.number] = std::move(placed);
}

std::optional<PlacedOffer> OfferLayouts::take(const Offer& offer) {
  if (auto kept = kept_.extract(offer.number)) return std::move(kept.mapped());
  if (lowest_ && lowest_->number == offer.number) return std::exchange(lowest_, std::nullopt);
  return std::nullopt;
}

}  // namespace tapedeck
