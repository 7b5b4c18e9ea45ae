// The exact search; see exact_search.h. Each level of the search has a frame with the choices for one point of the address x
// time plane, and tries them in order of rank:
//
//   open()             choose a section, list the buffers that fit at its floor, and the choice of no buffer
//   decide()           try the next choice; the skyline raises the lows of all neighbours
//   close()            all choices failed: combine their causes
//   return_to_cause()  go back to the last decision among the causes
#include <tapedeck/capture/planner/place/exact_search.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

namespace tapedeck {

ExactSearch::ExactSearch(const PlacePart& part, std::int64_t capacity, const ExactStrategy& strategy)
    : part_(part), skyline_(part, capacity), niche_(strategy.niche), lift_(strategy.lift) {
  seen_.assign(static_cast<std::size_t>(part.size()), 0);
  rank(strategy);
}

void ExactSearch::rank(const ExactStrategy& strategy) {
  std::vector<double> load(static_cast<std::size_t>(part_.sections), 0);
  for (std::int32_t t = 0; t < part_.sections; ++t)
    for (std::int32_t k = part_.members_at[t]; k < part_.members_at[t + 1]; ++k)
      load[t] += static_cast<double>(part_.units[part_.members[k]]);
  std::mt19937_64 random(strategy.seed);
  std::vector<std::tuple<double, double, std::int32_t>> keys;
  for (std::int32_t i = 0; i < part_.size(); ++i) {
    const double size = static_cast<double>(part_.units[i]);
    double width = 0, most = 0;
    for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
      for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last; ++t) {
        width += 1;
        most = std::max(most, load[t]);
      }
    std::pair<double, double> key;
    switch (strategy.taste) {
      case ExactStrategy::Taste::size:
        key = {size, width};
        break;
      case ExactStrategy::Taste::width:
        key = {width, size};
        break;
      case ExactStrategy::Taste::area:
        key = {size * width, size};
        break;
      case ExactStrategy::Taste::load:
        key = {most, width};
        break;
    }
    if (strategy.seed != 0) key.first *= 1 + static_cast<double>(random() >> 11) * 0x1p-53;
    keys.emplace_back(-key.first, -key.second, i);
  }
  std::sort(keys.begin(), keys.end());
  rank_.resize(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) rank_[std::get<2>(keys[k])] = static_cast<std::int32_t>(k);
}

// Chooses a section at the bottom of a niche: sections of one floor between sections of higher floors. A buffer with holes can
// reach across the wall of a niche into a lower niche, so with holes only the lowest of all floors is allowed.
std::int32_t ExactSearch::choose_section() const {
  std::int64_t lowest = Skyline::kClosed;
  if (part_.has_holes)
    for (std::int32_t t = 0; t < part_.sections; ++t) lowest = std::min(lowest, skyline_.floor(t));
  std::int32_t best = -1;
  std::tuple<std::int64_t, std::int64_t, std::int64_t> best_key;
  for (std::int32_t t = 0; t < part_.sections;) {
    const std::int32_t first = t;
    const std::int64_t floor = skyline_.floor(t);
    while (t < part_.sections && skyline_.floor(t) == floor) ++t;
    const bool is_niche =
        (first == 0 || skyline_.floor(first - 1) > floor) && (t == part_.sections || skyline_.floor(t) > floor);
    if (floor == Skyline::kClosed || !is_niche || floor > lowest) continue;
    for (std::int32_t s = first; s < t; ++s) {
      const std::int64_t slack = skyline_.slack(s), choices = skyline_.count(s) + (slack > 0);
      const std::int64_t leading = niche_ == ExactStrategy::Niche::fewest_choices ? choices
                                   : niche_ == ExactStrategy::Niche::lowest       ? floor
                                                                                  : slack;
      if (best >= 0 && std::get<0>(best_key) < leading) continue;
      const auto key = niche_ == ExactStrategy::Niche::fewest_choices ? std::tuple(choices, slack, floor)
                       : niche_ == ExactStrategy::Niche::lowest       ? std::tuple(floor, choices, slack)
                                                                      : std::tuple(slack, choices, floor);
      if (best >= 0 && best_key <= key) continue;
      best = s;
      best_key = key;
    }
  }
  return best;
}

void ExactSearch::open() {
  ++opened_;
  Frame f{choose_section(), choices_.size(), choices_.size(), skyline_.mark(), false};
  for (std::int32_t k = part_.members_at[f.section]; k < part_.members_at[f.section + 1]; ++k) {
    const std::int32_t i = part_.members[k];
    if (skyline_.low(i) != skyline_.floor(f.section)) continue;
    if (lift_ && !skyline_.is_supported(i)) {
      f.has_floating = true;
    } else {
      choices_.push_back(i);
    }
  }
  std::sort(choices_.begin() + static_cast<std::ptrdiff_t>(f.first), choices_.end(),
            [&](std::int32_t x, std::int32_t y) { return rank_[x] < rank_[y]; });
  drop_copies(f.first);
  choices_.push_back(kNothing);
  frames_.push_back(f);
  causes_.resize(frames_.size() * static_cast<std::size_t>(skyline_.words()));
  std::fill_n(causes(frames_.size() - 1), skyline_.words(), 0);
}

// Among choices of the same kind, keeps the first.
void ExactSearch::drop_copies(std::size_t first) {
  std::size_t kept = first;
  for (std::size_t k = first; k < choices_.size(); ++k) {
    std::int64_t& seen = seen_[part_.kind[choices_[k]]];
    if (seen != opened_) choices_[kept++] = choices_[k];
    seen = opened_;
  }
  choices_.resize(kept);
}

bool ExactSearch::decide(std::int32_t level) {
  Frame& f = frames_.back();
  const std::int32_t choice = choices_[f.next++];
  return choice == kNothing ? skyline_.leave_empty(f.section, level, lift_) : skyline_.put(choice, level);
}

// Undoes levels up to the last decision that the conflict names. Returns false if the conflict names no decision.
bool ExactSearch::return_to_cause() {
  while (!frames_.empty()) {
    skyline_.undo(frames_.back().mark);
    const std::size_t level = frames_.size() - 1;
    if (Levels::has(skyline_.conflict(), skyline_.bit(static_cast<std::int32_t>(level)))) {
      skyline_.unite(causes(level), skyline_.conflict());
      return true;
    }
    choices_.resize(frames_.back().first);
    frames_.pop_back();
  }
  return false;
}

// All choices of the last frame have failed. The causes of their failures, together with the reasons why there were no other
// choices, become a conflict among the earlier levels.
bool ExactSearch::close() {
  const Frame& f = frames_.back();
  const auto level = static_cast<std::int32_t>(frames_.size() - 1);
  Skyline::Word* why = causes(static_cast<std::size_t>(level));
  skyline_.add_reasons_of_section(f.section, why);
  if (f.has_floating)
    for (std::int32_t k = part_.members_at[f.section]; k < part_.members_at[f.section + 1]; ++k) {
      const std::int32_t i = part_.members[k];
      if (skyline_.low(i) == skyline_.floor(f.section) && !skyline_.is_supported(i)) skyline_.add_reasons_of_neighbours(i, why);
    }
  if (skyline_.is_own_bit(level)) Levels::remove(why, level);
  std::copy_n(why, skyline_.words(), skyline_.conflict());
  choices_.resize(f.first);
  frames_.pop_back();
  return return_to_cause();
}

ExactSearch::Outcome ExactSearch::run(std::int64_t most_steps, const SearchStop& stop) {
  if (!skyline_.is_possible()) return Outcome::none;
  if (!begun_) open();
  begun_ = true;
  while (!frames_.empty()) {
    const Frame& f = frames_.back();
    if (f.next == choices_.size()) {
      close();
      continue;
    }
    if (steps_ >= most_steps || (steps_ % 16 == 0 && stop.now())) return Outcome::unfinished;
    ++steps_;
    if (!decide(static_cast<std::int32_t>(frames_.size() - 1))) {
      return_to_cause();
    } else if (skyline_.free_count() == 0) {
      return Outcome::found;
    } else {
      open();
    }
  }
  return Outcome::none;
}

}  // namespace tapedeck
