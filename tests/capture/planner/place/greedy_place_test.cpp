// Tests greedy placement and local search (climbing) against a judge that looks at every pair of buffers. Every field of
// Tenant must be honoured, at any number of buffers, in one arena and in several; hints keep addresses.
#include <tapedeck/tests/capture/planner/place/instances.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/capture/planner/place/alive_steps.h>
#include <tapedeck/capture/planner/place/buffers_csv.h>
#include <tapedeck/capture/planner/place/check_placement.h>
#include <tapedeck/capture/planner/place/ejection_search.h>
#include <tapedeck/capture/planner/place/free_space.h>
#include <tapedeck/capture/planner/place/greedy_orders.h>
#include <tapedeck/capture/planner/place/time_sweep.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

namespace tapedeck {
namespace {

using test::judge;
using test::random_tenants;
using test::training_step;

// Fixes some buffers at the offsets of a correct placement, so that the fixed buffers cannot overlap.
void fix_some(std::vector<Tenant>* buffers, unsigned seed) {
  const Offsets placed = place(*buffers);
  for (std::size_t i = 0; i < buffers->size(); ++i)
    if ((i * 7 + seed) % 5 == 0) (*buffers)[i].fixed = placed.offsets[i];
}

TEST(PlaceGreedy, RandomSetsWithHolesFixedAndAlignments) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::vector<Tenant> buffers = random_tenants(seed);
    if (seed % 2) fix_some(&buffers, seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Offsets placed = place(buffers);
    ASSERT_EQ(judge(buffers, placed), "");
    EXPECT_GE(placed.end, placed.bound);
    EXPECT_GE(placed.bound, test::most_needed(buffers));
  }
}

TEST(PlaceGreedy, AHoleIsRoomForAnother) {
  std::vector<Tenant> buffers = {{100, 1, 0, 9}, {100, 1, 3, 5}};
  EXPECT_EQ(place(buffers).end, 200);
  buffers[0].holes = {{3, 5}};
  EXPECT_EQ(place(buffers).end, 100);
  buffers[0].holes = {{3, 4}};
  EXPECT_EQ(place(buffers).end, 200);
}

TEST(PlaceGreedy, FixedBuffersStayAndOthersMakeWay) {
  std::vector<Tenant> buffers = {{50, 1, 0, 4}, {100, 1, 0, 4}, {60, 1, 0, 4}};
  buffers[0].fixed = 100;
  const Offsets placed = place(buffers);
  EXPECT_EQ(judge(buffers, placed), "");
  EXPECT_EQ(placed.end, 210);
}

// The tree of occupied bytes must give the same offsets as a walk over all buffers. Several hundred buffers fill several blocks
// of the walk.
TEST(PlaceGreedy, TreeAndWalkFindTheSameOffsets) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<Tenant> buffers = random_tenants(seed, {seed % 10 == 0 ? 600 : 120, 70, true, {8}});
    const PlaceProblem p = make_problem(buffers);
    for (Fit fit : {Fit::first, Fit::best}) {
      Space tree(p);
      SmallSpace walk({}, granule_of(p, {}));
      for (std::size_t i = 0; i < p.buffers.size(); ++i) {
        const auto n = static_cast<std::int32_t>(i);
        const std::int64_t offset = walk.find(n, p.buffers[i], fit);
        ASSERT_EQ(tree.find(n, p.buffers[i], fit), offset) << "seed " << seed << ", buffer " << i;
        ASSERT_TRUE(tree.is_free(p.buffers[i], offset));
        tree.insert(n, p.buffers[i], offset);
        walk.insert(n, p.buffers[i], offset);
        ASSERT_FALSE(tree.is_free(p.buffers[i], offset));
      }
    }
  }
}

TEST(PlaceGreedy, AddressesStayWhenALittleChanges) {
  int all_kept = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<Tenant> buffers = training_step(2000, seed, 20);
    const Offsets before = place(buffers);
    std::mt19937 random(seed);
    std::vector<bool> changed(buffers.size(), false);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i].hint = before.offsets[i];
      if (random() % 200 == 0) {
        changed[i] = true;
        buffers[i].bytes += 64;
      }
    }
    const Offsets after = place(buffers);
    ASSERT_EQ(find_fault(buffers, after), "") << seed;
    std::size_t kept = 0, unchanged = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      unchanged += !changed[i];
      kept += !changed[i] && before.offsets[i] == after.offsets[i];
    }
    EXPECT_GE(kept * 100, unchanged * 97) << "seed " << seed << ": " << kept << " of " << unchanged
                                          << " that are as they were stay";
    all_kept += kept == unchanged;
  }
  EXPECT_GE(all_kept, 10) << "of 20";
}

TEST(PlaceGreedy, NothingChangedNothingMoves) {
  std::vector<Tenant> buffers = random_tenants(5, {300, 100, true, {64}});
  const Offsets before = place(buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].hint = before.offsets[i];
  EXPECT_EQ(place(buffers).offsets, before.offsets);
}

TEST(PlaceGreedy, AHintThatCostsBytesIsLeft) {
  std::vector<Tenant> buffers = {{100, 1, 0, 4}, {100, 1, 0, 4}};
  buffers[1].hint = 5000;
  EXPECT_EQ(place(buffers).end, 200);
}

// A hint must not stop the search for a lower end: with and without it, equal work finds about the same end.
TEST(PlaceGreedy, HintsThatCostMuchDoNotEndTheSearch) {
  for (unsigned seed : {1u, 2u, 3u}) {
    std::vector<Tenant> buffers = test::cut_up(seed, 40, 1000, 40);
    PlaceOptions options;
    options.work = 100'000;
    const Offsets without = place(buffers, options);
    buffers[0].hint = 0;
    const Offsets with = place(buffers, options);
    EXPECT_EQ(find_fault(buffers, with), "") << seed;
    EXPECT_LE(with.end, without.end + without.bound / kHintsMayCost) << seed;
    EXPECT_GT(with.work, 0) << seed;
  }
}

// A search keeps the hinted addresses if they cost at most one percent over the end that it finds.
TEST(PlaceGreedy, AddressesStayThroughASearch) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::vector<Tenant> buffers = random_tenants(seed, {300, 100, true, {64}});
    PlaceOptions options;
    options.work = 20'000;
    const Offsets before = place(buffers, options);
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].hint = before.offsets[i];
    const Offsets after = place(buffers, options);
    EXPECT_EQ(after.offsets, before.offsets) << seed;
    EXPECT_TRUE(after.at_hints) << seed;
  }
}

// Few buffers with many holes. The work must grow with the number of holes, not with the number of pairs of holes.
TEST(PlaceGreedy, ManyHolesOfFewBuffers) {
  std::vector<Tenant> buffers;
  for (std::int32_t i = 0; i < 20; ++i) {
    buffers.push_back({100, 1, 0, 19999});
    for (std::int32_t at = 1 + i % 2; at < 19998; at += 2) buffers.back().holes.push_back({at, at});
  }
  const Offsets placed = place(buffers);
  EXPECT_EQ(find_fault(buffers, placed), "");
  EXPECT_EQ(placed.end, 2000);
  PlaceOptions options;
  options.work = 100;
  EXPECT_EQ(place(buffers, options).end, 2000);
}

// Many buffers that live long: no greedy order is fast here.
TEST(PlaceGreedy, ManyThatLiveLongArePlacedAtAnyDeadline) {
  std::mt19937 random(11);
  std::vector<Tenant> buffers(30000);
  for (Tenant& b : buffers) {
    b.birth = static_cast<std::int32_t>(random() % 30000);
    b.death = b.birth + static_cast<std::int32_t>(random() % 4000);
    b.bytes = 1 + static_cast<std::int64_t>(random() % 1'000'000);
    b.alignment = 64;
  }
  const Offsets placed = place(buffers);
  EXPECT_EQ(find_fault(buffers, placed), "");
  const std::atomic<bool> cancel{true};
  PlaceOptions options;
  options.cancel = &cancel;
  const Offsets hurried = place(buffers, options);
  EXPECT_EQ(find_fault(buffers, hurried), "");
  EXPECT_GE(hurried.end, placed.end);
  EXPECT_LE(hurried.end, 2 * hurried.bound);
}

TEST(PlaceGreedy, SweepsAreRight) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<Tenant> buffers = random_tenants(seed);
    const PlaceProblem p = make_problem(buffers);
    ASSERT_EQ(judge(buffers, to_offsets(p, place_by_sweep(p), buffers.size())), "") << seed;
  }
}

TEST(PlaceGreedy, SixtyThousandBuffers) {
  for (unsigned seed : {1u, 2u}) {
    const std::vector<Tenant> buffers = training_step(60000, seed, 30);
    const Offsets placed = place(buffers);
    std::printf("seed %u: %zu buffers, end / bound = %.4f\n", seed, buffers.size(),
                static_cast<double>(placed.end) / static_cast<double>(placed.bound));
    EXPECT_EQ(find_fault(buffers, placed), "");
    EXPECT_LE(static_cast<double>(placed.end), 1.02 * static_cast<double>(placed.bound));
  }
}

TEST(PlaceGreedy, ManyBuffersLieTheSameOnAnyNumberOfThreads) {
  int above = 0;
  for (const auto& [n, seed] : {std::pair(6000, 1u), std::pair(9000, 2u), std::pair(24000, 3u)}) {
    if (n > 9000 && test::stride(2) > 1) continue;  // a sanitizer build has the threads of the others
    std::vector<Tenant> buffers = training_step(n, seed, 400);
    fix_some(&buffers, seed);
    const Offsets one = place(buffers);
    above += one.end > one.bound;
    for (int threads : {2, 4}) {
      if (threads == 2 && n > 6000) continue;  // these take long
      PlaceOptions options;
      options.threads = threads;
      const Offsets more = place(buffers, options);
      EXPECT_EQ(one.offsets, more.offsets) << n << " buffers, " << threads << " threads";
      EXPECT_EQ(one.end, more.end) << n << " buffers, " << threads << " threads";
    }
  }
  EXPECT_GE(above, 1) << "where the first attempt meets the bound no other is made";
}

TEST(PlaceGreedy, AHoleMayEndWithTheLastStepThereIs) {
  constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
  const Tenant early{100, 1, 0, kLast, -1, -1, {{5, kLast}}}, late{100, 1, 5, kLast};
  EXPECT_FALSE(alive_together(early, late));
  EXPECT_TRUE(alive_together(early, {100, 1, 4, kLast}));
  EXPECT_EQ(place({early, late}).end, 100);
  EXPECT_EQ(find_fault({early, late}, place({early, late})), "");
}

// ---- placement in several arenas (chunks) ----

TEST(PlaceInChunks, NoArenaIsLargerThanTheCap) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::vector<Tenant> buffers = random_tenants(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    PlaceOptions options;
    options.chunk_bytes = 500 + seed * 20;  // smaller than some buffers, larger than most
    const Offsets placed = place(buffers, options);
    ASSERT_EQ(judge(buffers, placed), "");
    ASSERT_EQ(placed.arena.size(), buffers.size());
    std::vector<std::int64_t> ends(buffers.size() + 1, 0), largest(ends);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_LT(placed.arena[i], static_cast<std::int32_t>(ends.size()));
      ends[placed.arena[i]] = std::max(ends[placed.arena[i]], buffers[i].bytes ? placed.offsets[i] + buffers[i].bytes : 0);
      largest[placed.arena[i]] = std::max(largest[placed.arena[i]], buffers[i].bytes);
    }
    for (std::size_t a = 0; a < ends.size(); ++a) EXPECT_LE(ends[a], std::max(options.chunk_bytes, largest[a]));
    EXPECT_GE(placed.end, placed.bound);
  }
}

TEST(PlaceInChunks, AQuarterOfThePeakCostsATwentiethAtMost) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const std::vector<Tenant> buffers = training_step(1400, seed, 20);
    const Offsets one = place(buffers);
    PlaceOptions options;
    options.chunk_bytes = one.end / 4;
    const Offsets several = place(buffers, options);
    EXPECT_EQ(find_fault(buffers, several, options.chunk_bytes), "");
    EXPECT_LE(static_cast<double>(several.end), 1.05 * static_cast<double>(one.end)) << "seed " << seed;
  }
}

// More work never gives a worse end, equal work gives the same answer, and the search stops once the end is within the
// capacity.
TEST(PlaceInChunks, WorkIsSpentOnOrders) {
  int better = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::vector<Tenant> buffers = random_tenants(seed);
    PlaceOptions options;
    options.chunk_bytes = 300 + seed * 30;
    const Offsets greedy = place(buffers, options);
    options.work = 20'000;
    const Offsets searched = place(buffers, options), again = place(buffers, options);
    EXPECT_EQ(find_fault(buffers, searched, options.chunk_bytes), "") << "seed " << seed;
    EXPECT_LE(searched.end, greedy.end);
    EXPECT_EQ(searched.offsets, again.offsets);
    EXPECT_EQ(searched.arena, again.arena);
    better += searched.end < greedy.end;
    options.capacity = greedy.end;
    EXPECT_EQ(place(buffers, options).end, greedy.end) << "seed " << seed;
  }
  EXPECT_GT(better, 5);
}

// If one chunk holds all buffers, the problem is that of one arena: it is searched and proven optimal.
TEST(PlaceInChunks, OneChunkThatHoldsAllIsOneArena) {
  for (unsigned seed : {1u, 2u, 3u}) {
    const std::vector<Tenant> buffers = test::cut_up(seed, 25, 1000, 25);
    PlaceOptions options;
    options.work = 200'000;
    for (std::int64_t chunk : {1000, 100'000}) {
      options.chunk_bytes = chunk;
      const Offsets placed = place(buffers, options);
      EXPECT_EQ(find_fault(buffers, placed, chunk), "");
      EXPECT_EQ(placed.end, 1000) << "seed " << seed << ", chunks of " << chunk;
      EXPECT_TRUE(placed.optimal);
      EXPECT_EQ(placed.arena, std::vector<std::int32_t>(buffers.size(), 0));
    }
  }
}

// The fast method must give the same offsets as looking at every pair.
TEST(PlaceInChunks, OversizedBuffersLieWhereAWalkHasThem) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const PlaceProblem p = make_problem(random_tenants(seed));
    const auto meet = [&](std::int32_t i, std::int32_t k) { return alive_together(p.buffers[i], p.buffers[k]); };
    const Oversized tree = place_oversized(p, 500), walk = place_oversized(p, 500, meet);
    EXPECT_EQ(tree.sizes, walk.sizes) << seed;
    EXPECT_EQ(tree.offsets, walk.offsets) << seed;
  }
}

// Large buffers that are never alive at the same time share one oversized chunk, in any order. Smaller buffers fill the
// space that is left.
TEST(PlaceInChunks, LargeBuffersShare) {
  const std::vector<Tenant> buffers = {{100, 1, 4, 5}, {90, 1, 2, 3}, {100, 1, 0, 1},
                                       {80, 1, 6, 7},  {10, 1, 2, 3}, {45, 1, 0, 9}};
  PlaceOptions options;
  options.chunk_bytes = 50;
  const Offsets placed = place(buffers, options);
  EXPECT_EQ(find_fault(buffers, placed, options.chunk_bytes), "");
  EXPECT_EQ(placed.end, 145);
  EXPECT_TRUE(placed.optimal);
}

// A fixed offset does not say which arena it means.
TEST(PlaceInChunks, RefusesFixedOffsetsAndNamesTheBuffer) {
  const std::vector<Tenant> buffers = {{8, 1, 0, 2}, {8, 1, 1, 3}, {8, 1, 2, 4, 16}, {8, 1, 2, 4, 0}};
  EXPECT_NO_THROW(place(buffers));
  PlaceOptions options;
  options.chunk_bytes = 32;
  try {
    place(buffers, options);
    FAIL() << "it was placed";
  } catch (const PlaceError& e) {
    EXPECT_EQ(e.buffers(), std::vector<std::int32_t>{2});
    EXPECT_EQ(std::string(e.what()).find("buffer 2 has a fixed offset"), 0u) << e.what();
  }
}

// ---- find_fault, which checks the offsets that the tool writes ----

TEST(FindFault, SaysWhatTheOracleSays) {
  int wrong = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const std::vector<Tenant> buffers = random_tenants(seed, {12, 12, true, {1, 4}});
    Offsets placed = place(buffers);
    std::mt19937 random(seed);
    if (seed % 3)
      // the moved buffer may still be right
      placed.offsets[random() % buffers.size()] = static_cast<std::int64_t>(random() % 500) * 4;
    if (seed % 3 == 2) placed.end = 0;
    std::int64_t end = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      end = std::max(end, buffers[i].bytes ? placed.offsets[i] + buffers[i].bytes : 0);
    if (seed % 3 == 1) placed.end = end;
    const bool is_wrong = !judge(buffers, placed).empty();
    wrong += is_wrong;
    ASSERT_EQ(!find_fault(buffers, placed).empty(), is_wrong)
        << "seed " << seed << ": " << judge(buffers, placed) << " / " << find_fault(buffers, placed);
  }
  EXPECT_GT(wrong, 200);
  EXPECT_LT(wrong, 450);
}

// ---- climbing: local search ----

Offsets climbed(const std::vector<Tenant>& buffers, std::int64_t work, std::uint64_t seed) {
  const PlaceProblem p = make_problem(buffers);
  Attempt best = place_greedily(p);
  climb(p, work, seed, &best);
  return to_offsets(p, best, buffers.size());
}

TEST(Climb, RandomSetsStayRightAndGetNoWorse) {
  int better = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::vector<Tenant> buffers = random_tenants(seed, {80, 30, seed % 2 == 0, {1, 64, 3}});
    if (seed % 3 == 0) fix_some(&buffers, seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Offsets greedy = place(buffers), after = climbed(buffers, 200000, seed);
    ASSERT_EQ(judge(buffers, after), "");
    EXPECT_LE(after.end, greedy.end);
    EXPECT_GE(after.end, after.bound);
    better += after.end < greedy.end;
  }
  EXPECT_GT(better, 20);
}

// Starts with all buffers stacked, far from the bound. The two runs differ only in the unit of the sizes, so their ends must
// be equal in units.
TEST(Climb, SizesNearTheLimitClimbLikeSmallOnes) {
  int better = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const std::vector<Tenant> buffers = test::cut_up(seed, 40, 60, 50);
    std::vector<std::int64_t> ends;
    for (const std::int64_t unit : {std::int64_t{1} << 24, std::int64_t{1} << 52}) {
      std::vector<Tenant> scaled = buffers;
      for (Tenant& b : scaled) b.bytes *= unit;
      const PlaceProblem p = make_problem(scaled);
      Attempt best;
      for (const Tenant& b : p.buffers) {
        best.offsets.push_back(best.end);
        best.end += b.bytes;
      }
      const std::int64_t before = best.end;
      climb(p, 100000, seed, &best);
      ASSERT_EQ(find_fault(scaled, to_offsets(p, best, scaled.size())), "") << "seed " << seed;
      EXPECT_EQ(best.end % unit, 0) << "seed " << seed;
      ends.push_back(best.end / unit);
      better += best.end < before;
    }
    EXPECT_EQ(ends[0], ends[1]) << "seed " << seed;
  }
  EXPECT_EQ(better, 20);
}

// Buffers that live alone at later steps change no answer, but with so many of them the search sorts the edges of neighbours
// instead of keeping the edges of all buffers in order.
TEST(Climb, SortedEdgesGiveTheSameAsKeptEdges) {
  int better = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<Tenant> buffers = random_tenants(seed, {300, 60, seed % 2 == 1, {1, 8, 12}});
    std::vector<std::vector<std::int64_t>> offsets;
    for (int lonely : {0, 20'000}) {
      const std::size_t among = make_problem(buffers).buffers.size();
      for (int k = 0; k < lonely; ++k) buffers.push_back({8, 1, 100 + k, 100 + k});
      const PlaceProblem p = make_problem(buffers);
      Attempt best;
      for (std::size_t i = 0; i < p.buffers.size(); ++i) {
        best.offsets.push_back(i < among ? align_up(best.end, 24) : 0);
        best.end = std::max(best.end, best.offsets.back() + p.buffers[i].bytes);
      }
      const std::int64_t before = best.end;
      climb(p, 100'000, seed, &best);
      better += best.end < before;
      offsets.emplace_back(best.offsets.begin(), best.offsets.begin() + static_cast<std::ptrdiff_t>(among));
    }
    EXPECT_EQ(offsets[0], offsets[1]) << "seed " << seed;
  }
  EXPECT_GT(better, 30);
}

TEST(Climb, SlicesOfWorkGiveTheSameAsOneCall) {
  const std::vector<Tenant> buffers = random_tenants(11, {300, 60, false, {1}});
  const PlaceProblem p = make_problem(buffers);
  Attempt once = place_greedily(p), sliced = once, again = once;
  Climber whole(p, 7), other(p, 7), parts(p, 7);
  whole.climb(400000, &once);
  other.climb(400000, &again);
  EXPECT_EQ(once.offsets, again.offsets);
  // A slice ends with the step in which its work runs out, so each slice may do slightly more work than its share.
  for (int i = 0; i < 400; ++i) parts.climb(1000, &sliced);
  EXPECT_LE(sliced.end, once.end);
}

std::vector<Tenant> read_file(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return parse_buffers(std::string(std::istreambuf_iterator<char>(stream), {}), path.string()).buffers;
}

TEST(Climb, ChallengingInstances) {
  const std::filesystem::path folder = std::filesystem::path(TAPEDECK_SHARED_DIR) / "data" / "minimalloc";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no instances at " << folder;
  double sum = 0;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    const std::vector<Tenant> buffers = read_file(entry.path());
    const Offsets placed = climbed(buffers, 5'000'000, 1);
    EXPECT_EQ(find_fault(buffers, placed), "");
    sum += std::log(static_cast<double>(placed.end) / static_cast<double>(placed.bound));
    ++files;
  }
  ASSERT_GT(files, 0);
  std::printf("geometric mean of end / bound: %.4f\n", std::exp(sum / files));
  EXPECT_LE(std::exp(sum / files), 1.15) << "what climbing over orders reaches in 10 s";
}

}  // namespace
}  // namespace tapedeck
