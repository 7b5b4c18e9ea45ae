// Tests the race of exact search and local search on one part: the result must be nearly as good as local search alone with
// a quarter of the work.
#include <tapedeck/tests/capture/planner/place/instances.h>

#include <tapedeck/capture/planner/place/check_placement.h>
#include <tapedeck/capture/planner/place/ejection_search.h>
#include <tapedeck/capture/planner/place/greedy_orders.h>
#include <tapedeck/capture/planner/place/part_search.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tapedeck {
namespace {

// Pieces of a rectangle, each made slightly smaller. An exact search of hundreds of such buffers does not finish, and local
// search still finds many improvements.
std::vector<Tenant> loose_pieces(unsigned seed, int pieces) {
  std::vector<Tenant> buffers = test::cut_up(seed, pieces, 1 << 20, 200);
  std::mt19937 random(seed);
  for (Tenant& b : buffers)
    b.bytes = std::max<std::int64_t>(b.bytes - b.bytes * static_cast<std::int64_t>(random() % 100) / 2000, 1);
  return buffers;
}

TEST(PartSearch, FindsWhatAClimberAloneFindsWithAQuarterOfTheWork) {
  for (unsigned seed : {1u, 2u}) {
    const std::vector<Tenant> buffers = loose_pieces(seed, 300);
    PlaceOptions options;
    options.work = place_steps(1.5e6, buffers.size());
    const Offsets placed = place(buffers, options);
    EXPECT_EQ(find_fault(buffers, placed), "") << seed;
    const PlaceProblem p = make_problem(buffers);
    Attempt climbed = place_greedily(p);
    climb(p, options.work / 4 * look_ups_of_step(buffers.size()), 1, &climbed);
    EXPECT_LE(static_cast<double>(placed.end), 1.01 * static_cast<double>(climbed.end)) << seed << ": bound " << placed.bound;
  }
}

TEST(PartSearch, EqualWorkEqualAnswerOnAnyNumberOfThreads) {
  const std::vector<Tenant> buffers = loose_pieces(3, 120);
  PlaceOptions options;
  options.work = 60'000;
  const Offsets one = place(buffers, options);
  for (int threads : {2, 4}) {
    options.threads = threads;
    const Offsets more = place(buffers, options);
    EXPECT_EQ(one.offsets, more.offsets) << threads;
    EXPECT_EQ(one.work, more.work) << threads;
  }
}

}  // namespace
}  // namespace tapedeck
