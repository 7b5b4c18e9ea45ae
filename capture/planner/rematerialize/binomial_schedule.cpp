#include <tapedeck/capture/planner/rematerialize/binomial_schedule.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;  // more steps than any chain has

// C(slots + repeats, slots): the most steps that can be reversed with this many slots if no step runs more than `repeats`
// times. At most kMany.
std::int64_t reach(std::int64_t slots, std::int64_t repeats) {
  if (slots < 0 || repeats < 0) return 0;
  std::int64_t number = 1;
  for (std::int64_t k = 1; k <= std::min(slots, repeats); ++k) {
    number = number * (std::max(slots, repeats) + k) / k;
    if (number >= kMany) return kMany;
  }
  return number;
}

std::int64_t repeats_needed(std::int64_t steps, std::int64_t slots) {
  std::int64_t repeats = 0;
  while (reach(slots, repeats) < steps) ++repeats;
  return repeats;
}

}  // namespace

std::int64_t fewest_forward_runs(std::int64_t steps, std::int64_t slots) {
  const std::int64_t repeats = repeats_needed(steps, slots);
  return repeats * steps - reach(slots + 1, repeats - 1);
}

// The stretch before the stop must be one that `slots` slots reverse with a repeat less, and the stretch behind it one that a
// slot less reverses with as many. Of all such stops the first is taken.
std::int64_t first_stop(std::int64_t steps, std::int64_t slots) {
  const std::int64_t repeats = repeats_needed(steps, slots);
  const std::int64_t stop = std::max(reach(slots, repeats - 2), steps - reach(slots - 1, repeats));
  return std::clamp<std::int64_t>(stop, 1, steps - 1);
}

}  // namespace tapedeck
