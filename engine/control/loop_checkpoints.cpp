#include <tapedeck/engine/control/loop_checkpoints.h>

#include <tapedeck/kernels/checked_math.h>

#include <cmath>

namespace tapedeck {

namespace schedule {

namespace {
__int128 square(std::int64_t r) { return static_cast<__int128>(r) * r; }

std::int64_t root_rounded_up(std::int64_t n) {
  auto r = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (r > 0 && square(r) >= n) --r;
  while (square(r) < n) ++r;
  return r;
}
}  // namespace

std::int64_t block_length(std::int64_t trips, std::int64_t checkpoint) {
  if (checkpoint == 0) return std::max<std::int64_t>(trips, 1);
  return checkpoint > 0 ? checkpoint : std::max<std::int64_t>(root_rounded_up(trips), 1);
}

std::int64_t snapshots(std::int64_t trips) {
  std::int64_t s = 0;
  while (s < 62 && (std::int64_t{1} << s) < trips) ++s;
  return s;
}

std::int64_t reach(std::int64_t s, std::int64_t r, std::int64_t at_most) {
  std::int64_t n = 1;
  for (std::int64_t k = 1; k <= s; ++k) {
    // Exact, because each step gives a binomial coefficient. The product has up to 126 bits.
    const __int128 next = static_cast<__int128>(n) * (static_cast<__int128>(r) + k) / k;
    if (next >= at_most) return at_most;
    n = static_cast<std::int64_t>(next);
  }
  return n;
}

}  // namespace schedule

std::int64_t tape_entries(std::int64_t trips, std::int64_t checkpoint) {
  if (trips <= 0) return 0;
  if (checkpoint == kCheckpointLog) return schedule::snapshots(trips) + 3;
  const std::int64_t length = schedule::block_length(trips, checkpoint), blocks = trips / length + (trips % length != 0);
  return limited_sum({std::max(limited_sum({blocks, 1}), limited_sum({blocks - 1, std::min(length, trips)})), 1});
}

double passes_run_again(std::int64_t trips, std::int64_t checkpoint) {
  if (trips <= 1) return 0;
  if (checkpoint != kCheckpointLog) {
    const std::int64_t length = schedule::block_length(trips, checkpoint), blocks = trips / length + (trips % length != 0);
    return static_cast<double>(blocks - 1) * static_cast<double>(length - 1);
  }
  const auto all = static_cast<double>(trips);
  if (trips > kMostCountedTrips) return all * static_cast<double>(schedule::snapshots(trips)) / 2;
  double runs = 0;
  walk_back(
      trips, checkpoint, 0,
      [&](int carry, std::int64_t) {
        ++runs;
        return carry;
      },
      [](int, std::int64_t) {});
  return runs - (all - 1);
}

}  // namespace tapedeck
