// Tests the exact search for offsets and the race of its strategies. The oracles are brute force over all orders of a few
// buffers, and published instances with known capacities.
#include <tapedeck/capture/planner/place/exact_search.h>
#include <tapedeck/capture/planner/place/place.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/planner/place/instances.h>
#include <tapedeck/tests/capture/planner/place/published.h>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <numeric>
#include <sstream>

namespace tapedeck {
namespace {

using test::judge;

bool meet(const Tenant& a, const Tenant& b) {
  for (std::int32_t step = std::max(a.birth, b.birth); step <= std::min(a.death, b.death); ++step)
    if (test::needs(a, step) && test::needs(b, step)) return true;
  return false;
}

// The lowest offset of buffer i above the buffers that lie already. Some best placement arises by placing the buffers one
// after the other like this, so lowest_end() tries every order.
std::int64_t fall(const std::vector<Tenant>& buffers, std::size_t i, const std::vector<std::int64_t>& offsets) {
  std::int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    while (offset % buffers[i].alignment != 0) ++offset;
    for (std::size_t k = 0; k < buffers.size(); ++k)
      if (offsets[k] >= 0 && meet(buffers[i], buffers[k]) && offset < offsets[k] + buffers[k].bytes &&
          offsets[k] < offset + buffers[i].bytes) {
        offset = offsets[k] + buffers[k].bytes;
        moved = true;
      }
  }
  return offset;
}

std::int64_t lowest_end(const std::vector<Tenant>& buffers) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].fixed < 0) order.push_back(i);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  do {
    std::vector<std::int64_t> offsets;
    for (const Tenant& b : buffers) offsets.push_back(b.fixed);
    for (std::size_t i : order) offsets[i] = fall(buffers, i, offsets);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) end = std::max(end, offsets[i] + buffers[i].bytes);
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// At most `most` buffers with small numbers, so that ties are frequent. Every fourth seed has holes, fixed buffers or
// alignments.
std::vector<Tenant> few_tenants(unsigned seed, int most) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  std::vector<Tenant> buffers(static_cast<std::size_t>(2 + pick(most - 1)));
  const int steps = 2 + pick(8), largest = 2 + pick(12);
  for (Tenant& b : buffers) {
    b.birth = pick(steps);
    b.death = std::min(b.birth + pick(steps), steps - 1);
    b.bytes = 1 + pick(largest);
    if (seed % 4 == 1 && b.death - b.birth > 1) b.holes.push_back({b.birth + 1, b.birth + 1 + pick(b.death - b.birth - 1)});
    if (seed % 4 == 3) b.alignment = std::vector<std::int64_t>{1, 2, 4, 3}[static_cast<std::size_t>(pick(4))];
  }
  for (std::size_t i = 0; seed % 4 == 2 && i < buffers.size(); ++i) {
    buffers[i].fixed = pick(3) ? -1 : pick(10);
    for (std::size_t k = 0; k < i && buffers[i].fixed >= 0; ++k)
      if (buffers[k].fixed >= 0 && meet(buffers[i], buffers[k])) buffers[i].fixed = -1;
  }
  return buffers;
}

std::string describe(const std::vector<Tenant>& buffers) {
  std::ostringstream out;
  for (const Tenant& b : buffers) {
    out << "\n  " << b.bytes << " bytes, steps " << b.birth << ".." << b.death << ", alignment " << b.alignment << ", fixed "
        << b.fixed;
    for (const Steps& hole : b.holes) out << ", hole " << hole.first << ".." << hole.last;
  }
  return out.str();
}

std::string fault_of_place(const std::vector<Tenant>& buffers) {
  PlaceOptions options;
  options.work = 1000000;
  const Offsets placed = place(buffers, options);
  if (const std::string fault = judge(buffers, placed); !fault.empty()) return fault;
  if (!placed.optimal) return "not proven";
  const std::int64_t best = lowest_end(buffers);
  return placed.end == best ? "" : "ends at " + std::to_string(placed.end) + ", could at " + std::to_string(best);
}

// Removes every buffer that the fault does not need.
std::vector<Tenant> shrink(std::vector<Tenant> buffers) {
  for (std::size_t i = 0; i < buffers.size();) {
    std::vector<Tenant> fewer = buffers;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!fewer.empty() && !fault_of_place(fewer).empty()) {
      buffers = std::move(fewer);
      i = 0;
    } else {
      ++i;
    }
  }
  return buffers;
}

TEST(PlaceExact, EqualsBruteForce) {
  int above_bound = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    const std::vector<Tenant> buffers = few_tenants(seed, 7);
    const std::string fault = fault_of_place(buffers);
    ASSERT_EQ(fault, "") << "seed " << seed << describe(shrink(buffers));
    above_bound += lowest_end(buffers) > place(buffers).bound;
  }
  EXPECT_GT(above_bound, 50);  // otherwise the bound alone would answer
}

TEST(PlaceExact, EightBuffersEqualBruteForce) {
  for (unsigned seed = 10000; seed < 10012; ++seed) {
    std::vector<Tenant> buffers = few_tenants(seed, 8);
    while (buffers.size() < 8) buffers.push_back(buffers[seed % buffers.size()]);
    for (Tenant& b : buffers) b.fixed = -1;
    ASSERT_EQ(fault_of_place(buffers), "") << "seed " << seed << describe(shrink(buffers));
  }
}

// Every strategy finds a placement if there is one, and proves that there is none if there is not.
TEST(PlaceExact, EveryStrategyIsComplete) {
  for (unsigned seed = 0; seed < 240; ++seed) {
    const std::vector<Tenant> buffers = few_tenants(seed, 6);
    const std::int64_t best = lowest_end(buffers);
    const PlaceProblem p = make_problem(buffers);
    const std::vector<PlacePart> parts = split(p);
    for (int s = 0; s < 24; ++s) {
      const ExactStrategy strategy{static_cast<ExactStrategy::Niche>(s % 3), static_cast<ExactStrategy::Taste>(s / 3 % 4),
                                   s >= 12, seed % 3};
      for (std::int64_t capacity : {best, best - 1}) {
        bool found = true;
        for (const PlacePart& part : parts) {
          ExactSearch search(part, capacity / part.unit, strategy);
          const ExactSearch::Outcome outcome = search.run(10000000);
          ASSERT_NE(outcome, ExactSearch::Outcome::unfinished);
          found = found && outcome == ExactSearch::Outcome::found;
        }
        ASSERT_EQ(found, capacity == best) << "seed " << seed << ", strategy " << s << ", capacity " << capacity
                                           << describe(buffers);
      }
    }
  }
}

std::vector<Tenant> with_fixed(std::vector<Tenant> buffers) {
  if (!buffers.empty() && buffers[0].bytes > 0) buffers[0].fixed = 30 * buffers[0].alignment;
  return buffers;
}

TEST(PlaceExact, LargerSetsAreWholeAndNeverBelowTheBound) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::vector<Tenant> buffers = with_fixed(test::random_tenants(seed));
    PlaceOptions options;
    options.work = 4000;
    const Offsets placed = place(buffers, options), greedy = place(buffers);
    ASSERT_EQ(judge(buffers, placed), "") << "seed " << seed;
    EXPECT_GE(placed.end, test::most_needed(buffers)) << "seed " << seed;
    EXPECT_LE(placed.end, greedy.end) << "seed " << seed;
    EXPECT_LE(placed.work, options.work) << "seed " << seed;
  }
}

TEST(PlaceExact, EqualWorkEqualAnswerOnAnyNumberOfThreads) {
  test::Kind kind;
  kind.buffers = 150;
  int searched = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const std::vector<Tenant> buffers = test::random_tenants(seed, kind);
    PlaceOptions options;
    options.work = 30000;
    const Offsets one = place(buffers, options);
    searched += one.work > 0;
    for (int threads : {2, 4}) {
      options.threads = threads;
      const Offsets more = place(buffers, options);
      EXPECT_EQ(one.offsets, more.offsets) << "seed " << seed << ", " << threads << " threads";
      EXPECT_EQ(one.work, more.work) << "seed " << seed << ", " << threads << " threads";
      EXPECT_EQ(one.optimal, more.optimal) << "seed " << seed << ", " << threads << " threads";
    }
  }
  EXPECT_GT(searched, 2);
}

TEST(PlaceExact, IsCutWhereNothingIsAlive) {
  std::vector<Tenant> buffers;
  for (unsigned part = 0; part < 5; ++part)
    for (Tenant b : few_tenants(4 * part, 7)) {
      b.birth += static_cast<std::int32_t>(part) * 100;
      b.death += static_cast<std::int32_t>(part) * 100;
      buffers.push_back(b);
    }
  const PlaceProblem p = make_problem(buffers);
  std::vector<std::int32_t> seen;
  for (const PlacePart& part : split(p)) {
    for (std::int32_t i : part.buffers)
      for (std::int32_t k : part.buffers) EXPECT_EQ(buffers[i].birth / 100, buffers[k].birth / 100);
    seen.insert(seen.end(), part.buffers.begin(), part.buffers.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::int32_t> all(buffers.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
  std::int64_t best = 0;
  for (unsigned part = 0; part < 5; ++part) best = std::max(best, lowest_end(few_tenants(4 * part, 7)));
  PlaceOptions options;
  options.work = 1000000;
  const Offsets placed = place(buffers, options);
  EXPECT_EQ(judge(buffers, placed), "");
  EXPECT_EQ(placed.end, best);
  EXPECT_TRUE(placed.optimal);
}

// The best end is 7, the bound 6. EqualsBruteForce found these buffers.
std::vector<Tenant> above_its_bound() { return {{2, 2, 6, 6}, {1, 2, 3, 7}, {2, 4, 6, 7}, {2, 3, 2, 5}, {1, 4, 4, 7}}; }

TEST(PlaceExact, AnImpossibleCapacityGivesTheBestThereIs) {
  PlaceOptions options;
  options.work = 1000000;
  options.capacity = 6;
  const Offsets placed = place(above_its_bound(), options);
  EXPECT_EQ(placed.end, 7);
  EXPECT_EQ(placed.bound, 6);
  EXPECT_TRUE(placed.optimal);
  EXPECT_EQ(judge(above_its_bound(), placed), "");
}

TEST(PlaceExact, AnEndWithinTheCapacityWillDo) {
  PlaceOptions options;
  options.work = 1000000;
  options.capacity = 1000000;
  EXPECT_EQ(place(above_its_bound(), options).work, 0);
}

TEST(PlaceExact, IsCancelled) {
  test::Kind kind;
  kind.buffers = 150;
  std::atomic<bool> cancel{true};
  PlaceOptions options;
  options.seconds = 1000;
  options.cancel = &cancel;
  for (unsigned seed = 0; seed < 5; ++seed) {
    const std::vector<Tenant> buffers = test::random_tenants(seed, kind);
    EXPECT_EQ(place(buffers, options).end, place(buffers).end);
  }
}

// The buffers are a rectangle cut up without gaps, so the best end is known.
TEST(PlaceExact, WhatWasCutUpIsPutTogetherAgain) {
  int above = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const std::vector<Tenant> buffers = test::cut_up(seed, 30, 100000, 60);
    PlaceOptions options;
    options.work = 200000;
    const Offsets placed = place(buffers, options);
    ASSERT_EQ(judge(buffers, placed), "") << "seed " << seed;
    EXPECT_EQ(placed.bound, 100000) << "seed " << seed;
    EXPECT_EQ(placed.end, 100000) << "seed " << seed;
    above += place(buffers).end > 100000;
  }
  EXPECT_GE(above, 8) << "where greedy placement meets the bound, the search shows nothing";
}

TEST(PlaceExact, IsCancelledInTheMiddle) {
  test::Kind kind{400, 100, false, {1}};
  int stopped_early = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const std::vector<Tenant> buffers = test::random_tenants(seed, kind);
    PlaceOptions options;
    options.work = 60000;
    const Offsets whole = place(buffers, options);
    std::atomic<bool> cancel{false};
    std::vector<std::int64_t> ends;
    options.cancel = &cancel;
    options.on_better = [&](std::int64_t end, double) {
      ends.push_back(end);
      cancel = ends.size() == 2;  // the first end is that of the greedy placement
    };
    const Offsets placed = place(buffers, options);
    ASSERT_EQ(judge(buffers, placed), "") << "seed " << seed;
    ASSERT_LE(ends.size(), 2u) << "seed " << seed;
    EXPECT_EQ(placed.end, ends.back()) << "seed " << seed;
    stopped_early += ends.size() == 2 && placed.work < whole.work && placed.end > whole.end;
  }
  EXPECT_GE(stopped_early, 2);
}

TEST(PlaceExact, TellsOfEveryBetterEnd) {
  test::Kind kind;
  kind.buffers = 150;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const std::vector<Tenant> buffers = test::random_tenants(seed, kind);
    std::vector<std::int64_t> ends;
    PlaceOptions options;
    options.work = 30000;
    options.on_better = [&](std::int64_t end, double seconds) {
      ends.push_back(end);
      EXPECT_GE(seconds, 0);
    };
    const Offsets placed = place(buffers, options);
    if (placed.end == 0) continue;  // no buffer has any bytes
    ASSERT_FALSE(ends.empty());
    EXPECT_EQ(ends.front(), place(buffers).end);
    EXPECT_EQ(ends.back(), placed.end);
    for (std::size_t k = 1; k < ends.size(); ++k) EXPECT_LT(ends[k], ends[k - 1]);
  }
}

TEST(PlaceExact, RefusesWhatIsNotAnInstance) {
  const std::int64_t large = std::int64_t{1} << 61;
  const std::vector<std::vector<Tenant>> bad = {
      {{-1, 1, 0, 1}},                           // a negative size
      {{1, 0, 0, 1}},                            // no alignment
      {{1, 1, 2, 1}},                            // dies before its birth
      {{1, 1, 0, 9, -1, -1, {{3, 2}}}},          // a hole that ends before it begins
      {{1, 1, 0, 9, -1, -1, {{4, 5}, {2, 3}}}},  // holes out of order
      {{1, 1, 0, 9, -1, -1, {{2, 4}, {4, 5}}}},  // holes that meet
      {{1, 1, 1, 9, -1, -1, {{0, 4}}}},          // a hole outside of the life
      {{1, 1, 1, 9, -1, -1, {{4, 10}}}},
      {{2, 1, 0, 1, 0}, {2, 1, 1, 2, 1}},  // fixed buffers that overlap
      {{2, 1, 0, 9, 5}, {9, 1, 2, 3, 0}},
      {{large, 1, 0, 1}, {large, 1, 2, 3}, {large, 1, 4, 5}},  // sums beyond 2^62
      {{1, large, 0, 1}, {1, large, 0, 1}, {1, large, 0, 1}},
      {{1, 1, 0, 1, std::numeric_limits<std::int64_t>::max()}},
  };
  for (std::size_t k = 0; k < bad.size(); ++k) EXPECT_THROW(place(bad[k]), UsageError) << "case " << k;
  const auto culprits = [](const std::vector<Tenant>& all) {
    try {
      place(all);
    } catch (const PlaceError& e) {
      return e.buffers();
    }
    return std::vector<std::int32_t>{};
  };
  EXPECT_EQ(culprits({{0, 1, 0, 9}, {2, 1, 0, 9, 5}, {1, 1, 0, 9}, {9, 1, 2, 3, 0}}), (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(culprits({{1, 1, 0, 1, 4}, {1, 1, 0, 1, std::numeric_limits<std::int64_t>::max()}, {1, 1, 0, 1}}),
            (std::vector<std::int32_t>{1}));
  EXPECT_EQ(culprits({{1, 1, 0, 1}, {1, 1, 2, 1}}), (std::vector<std::int32_t>{1}));
  // two fixed buffers, never alive together
  EXPECT_NO_THROW(place({{2, 1, 0, 1, 0}, {2, 1, 2, 3, 1}}));
  // two fixed buffers; the second lives in a hole of the first
  EXPECT_NO_THROW(place({{2, 1, 0, 9, 5, -1, {{2, 3}}}, {9, 1, 2, 3, 0}}));
  // A hole may begin at the birth of its buffer, end at its death, or fill its whole life.
  EXPECT_NO_THROW(place({{1, 1, 0, 9, -1, -1, {{0, 9}}}, {1, 1, 0, 9, -1, -1, {{0, 3}}}, {1, 1, 0, 9, -1, -1, {{6, 9}}}}));
}

// ---- published instances, with a limit on the steps of search and not on time ----

struct Target {
  const char* file;
  std::int64_t capacity;  // -1: the end must meet the bound
  std::int64_t work;
};

void expect_reached(const Target& target) {
  const std::filesystem::path path = std::filesystem::path(TAPEDECK_SHARED_DIR) / "data" / target.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no instance at " << path;
  const std::vector<Tenant> buffers = test::read_instance(path);
  PlaceOptions options;
  options.work = target.work;
  options.capacity = target.capacity;
  options.threads = 2;
  const Offsets placed = place(buffers, options);
  EXPECT_LE(placed.end, target.capacity < 0 ? placed.bound : target.capacity) << target.file;
  EXPECT_LE(placed.work, target.work);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_GE(placed.offsets[i], 0);
    end = std::max(end, placed.offsets[i] + buffers[i].bytes);
    for (std::size_t k = 0; k < i; ++k)
      ASSERT_TRUE(buffers[i].death < buffers[k].birth || buffers[k].death < buffers[i].birth ||
                  placed.offsets[i] + buffers[i].bytes <= placed.offsets[k] ||
                  placed.offsets[k] + buffers[k].bytes <= placed.offsets[i])
          << target.file << ": " << i << " and " << k;
  }
  EXPECT_EQ(placed.end, end);
}

TEST(PlaceExact, MiniMallocAtThePublishedCapacity) {
  for (const char* file : {"A", "C", "F", "J", "K"})
    for (std::int64_t percent : {100, 101, 105, 110, 120}) {
      const std::string path = std::string("minimalloc/") + file + ".1048576.csv";
      expect_reached({path.c_str(), 1048576 * percent / 100, 100000});
    }
}
TEST(PlaceExact, MiniMallocBelowThePublishedCapacity) {
  expect_reached({"minimalloc/C.1048576.csv", -1, 50000});
  expect_reached({"minimalloc/J.1048576.csv", 1036288, 100000});
}
TEST(PlaceExact, RealTrainingGraphMeetsItsBound) { expect_reached({"buffers/somas_resnet50.csv", -1, 100000}); }

}  // namespace
}  // namespace tapedeck
