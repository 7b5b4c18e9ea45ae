#include <tapedeck/capture/planner/place/part_search.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck {

namespace {

// Rounds of the race without a win before the ejection search begins: small parts are solved by then. In parts of hundreds of
// buffers every further round is a share of the work that wins nothing.
constexpr int kPartPatience = 1;
constexpr std::int64_t kShare = 3;    // the searcher that had the last win gets so many times the work of the other
constexpr double kUsOfLookUp = 0.06;  // microseconds to look up one buffer in the ejection search

}  // namespace

double us_of_step(std::size_t stretches) {
  const double n = std::max(static_cast<double>(stretches), 10.0);
  return std::min(n / 30, n * n / 31'000);
}

std::int64_t look_ups_of_step(std::size_t stretches) {
  return static_cast<std::int64_t>(us_of_step(stretches) / kUsOfLookUp) + 1;
}

PartSearch::PartSearch(const PlaceProblem& p, const PlacePart& part, Attempt known)
    : p_(p), part_(part), race_(part, (known.end + part.unit - 1) / part.unit), best_(std::move(known)) {}

void PartSearch::take(Attempt found) {
  if (found.end >= best_.end) return;
  best_ = std::move(found);
  race_.note_end((best_.end + part_.unit - 1) / part_.unit);
}

void PartSearch::begin_to_climb() {
  for (std::int32_t i : part_.buffers) alone_.buffers.push_back(p_.buffers[i]);
  alone_.steps = p_.steps;
  climber_ = std::make_unique<Climber>(alone_, 1);
}

std::int64_t PartSearch::share_of_climber(std::int64_t most_steps) const {
  return climber_won_ ? std::min(last_round_ * kShare, most_steps / (kShare + 1) * kShare)
                      : std::min(last_round_ / kShare, most_steps / (kShare + 1));
}

Attempt PartSearch::of_race() const {
  Attempt found;
  for (std::int32_t i = 0; i < part_.size(); ++i) {
    found.offsets.push_back(race_.offsets()[i] * part_.unit);
    found.end = std::max(found.end, found.offsets.back() + part_.units[i] * part_.unit);
  }
  return found;
}

std::int64_t PartSearch::turn(std::int64_t low, std::int64_t goal, std::int64_t most_steps, const SearchStop& stop) {
  if (vain_rounds_ >= kPartPatience && !climber_) begin_to_climb();
  const std::int64_t share = climber_ && climber_->is_able() ? share_of_climber(most_steps) : 0;
  const std::int64_t before = race_.end(), look_ups = share * look_ups_of_step(part_.spans.size());
  if (share > 0) climber_->raise_lowest(std::max(low, proven()));
  Attempt climbed = best_;
  const auto race = [&] {
    last_round_ = race_.round({low / part_.unit, goal < 0 ? -1 : goal / part_.unit}, most_steps - share, stop);
  };
  const auto climb = [&] { climber_->climb(look_ups, &climbed, stop); };
  kernels::parallel_for(share > 0 ? 2 : 1, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t searcher = begin; searcher < end; ++searcher) searcher == 0 ? race() : climb();
  });
  const bool race_won = race_.end() < before;
  vain_rounds_ = race_won ? 0 : vain_rounds_ + 1;
  if (race_won) climber_won_ = false;
  if (race_won) best_ = of_race();
  if (climbed.end < best_.end) climber_won_ = true;
  take(std::move(climbed));
  return std::max<std::int64_t>(last_round_ + share, 1);
}

}  // namespace tapedeck
