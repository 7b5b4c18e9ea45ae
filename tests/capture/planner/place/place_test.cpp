// Tests place(): an oracle that looks at every pair checks that buffers which are alive together do not overlap. On
// published instances, the end must be close to the bound.
#include <tapedeck/capture/planner/place/check_placement.h>
#include <tapedeck/capture/planner/place/place.h>

#include <tapedeck/tests/capture/planner/place/published.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>

namespace tapedeck {
namespace {

bool together(const Tenant& a, const Tenant& b) { return a.birth <= b.death && b.birth <= a.death; }

std::int64_t most_alive(const std::vector<Tenant>& buffers) {
  std::int64_t most = 0;
  for (const Tenant& at : buffers) {  // live bytes are highest when some buffer is born
    std::int64_t alive = 0;
    for (const Tenant& b : buffers) alive += b.birth <= at.birth && at.birth <= b.death ? b.bytes : 0;
    most = std::max(most, alive);
  }
  return most;
}

void expect_good(const std::vector<Tenant>& buffers, const Offsets& placed) {
  ASSERT_EQ(placed.offsets.size(), buffers.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_GE(placed.offsets[i], 0);
    ASSERT_EQ(placed.offsets[i] % buffers[i].alignment, 0);
    end = std::max(end, placed.offsets[i] + buffers[i].bytes);
    for (std::size_t k = 0; k < i; ++k) {
      if (!together(buffers[i], buffers[k]) || buffers[i].bytes == 0 || buffers[k].bytes == 0) continue;
      const bool apart = placed.offsets[i] + buffers[i].bytes <= placed.offsets[k] ||
                         placed.offsets[k] + buffers[k].bytes <= placed.offsets[i];
      ASSERT_TRUE(apart) << "buffers " << i << " and " << k << " overlap";
    }
  }
  EXPECT_EQ(placed.end, end);
  EXPECT_GE(placed.end, placed.bound);
}

std::vector<Tenant> random_buffers(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  std::vector<Tenant> buffers(static_cast<std::size_t>(20 + pick(100)));
  for (Tenant& b : buffers) {
    b.birth = pick(60);
    b.death = b.birth + pick(25);
    b.bytes = 1 + pick(5000);
    b.alignment = 64;
  }
  return buffers;
}

// Starts from a known placement. Retries never raise the end, and a search gives the same result with and without this
// start.
TEST(Place, GoesOnFromWhatIsKnown) {
  int lower = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<Tenant> buffers = random_buffers(seed);
    const Offsets greedy = place(buffers);
    PlaceOptions again;
    again.start = greedy.offsets;
    EXPECT_EQ(place(buffers, again).offsets, greedy.offsets);
    again.retries = 12;
    const Offsets retried = place(buffers, again);
    expect_good(buffers, retried);
    EXPECT_LE(retried.end, greedy.end);
    lower += retried.end < greedy.end;
    PlaceOptions searched, from_there;
    searched.work = from_there.work = 2000;
    from_there.start = greedy.offsets;
    EXPECT_EQ(place(buffers, from_there).offsets, place(buffers, searched).offsets);
  }
  EXPECT_GT(lower, 10);
}

// `slack` says how far above the bound an end may be without another attempt.
TEST(Place, SlackIsAsGoodAsTheBound) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<Tenant> buffers = random_buffers(seed);
    PlaceOptions loose;
    loose.slack = 1'000'000;
    const Offsets first = place(buffers, loose);
    expect_good(buffers, first);
    PlaceOptions hurried;
    hurried.first_fit_only = true;
    const Offsets second = place(buffers, hurried), all = place(buffers);
    expect_good(buffers, second);
    EXPECT_LE(second.end, first.end);
    EXPECT_LE(all.end, second.end);
  }
}

TEST(Place, RandomBuffersNeverOverlap) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
    std::vector<Tenant> buffers(static_cast<std::size_t>(pick(120)));
    const int steps = 1 + pick(100), longest = 1 + pick(steps), largest = 1 + pick(5000);
    for (Tenant& b : buffers) {
      b.birth = pick(steps);
      b.death = std::min(b.birth + pick(longest), steps - 1);
      b.bytes = pick(10) ? pick(largest) : 0;
      b.alignment = std::int64_t{1} << pick(8);
    }
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Offsets placed = place(buffers);
    ASSERT_NO_FATAL_FAILURE(expect_good(buffers, placed));
    EXPECT_EQ(placed.bound, most_alive(buffers));
  }
}

TEST(Place, NothingAndNoBytes) {
  EXPECT_EQ(place({}).end, 0);
  EXPECT_EQ(place({{0, 64, 0, 5}, {0, 1, 2, 3}}).end, 0);
}

// A buffer whose holes cover its whole life needs no place. A fixed buffer stays at its offset.
TEST(Place, WhatIsNeverAliveIsInNobodysWay) {
  const std::vector<Tenant> buffers = {
      {100, 1, 0, 9, 40, -1, {{0, 3}, {4, 9}}}, {50, 1, 0, 9}, {8, 4, 2, 2, -1, -1, {{2, 2}}}, {0, 1, 0, 9, 7}};
  const Offsets placed = place(buffers);
  EXPECT_EQ(find_fault(buffers, placed), "");
  EXPECT_EQ(placed.offsets, (std::vector<std::int64_t>{40, 0, 0, 7}));
  EXPECT_EQ(placed.end, 50);
  const Offsets nothing = place({buffers[0]});
  EXPECT_EQ(find_fault({buffers[0]}, nothing), "");
  EXPECT_EQ(nothing.offsets, std::vector<std::int64_t>{40});
}

TEST(Place, NestedLifetimesMeetTheBound) {
  std::vector<Tenant> buffers;  // nested lives, as forward and backward make them
  for (std::int32_t i = 0; i < 500; ++i) buffers.push_back({1000 + i % 7, 1, i, 1000 - i});
  const Offsets placed = place(buffers);
  expect_good(buffers, placed);
  EXPECT_EQ(placed.end, placed.bound);
}

TEST(Place, OperandAndResultOfANodeDoNotOverlap) {
  const Offsets placed = place({{100, 1, 0, 1}, {100, 1, 1, 2}, {100, 1, 2, 3}});
  EXPECT_EQ(placed.end, 200);
}

TEST(Place, IsDeterministic) {
  std::mt19937 random(3);
  std::vector<Tenant> buffers(400);
  for (Tenant& b : buffers) {
    b.birth = static_cast<std::int32_t>(random() % 200);
    b.death = b.birth + static_cast<std::int32_t>(random() % 30);
    b.bytes = static_cast<std::int64_t>(random() % 4) * 256;
  }
  EXPECT_EQ(place(buffers).offsets, place(buffers).offsets);
}

// ---- published instances: columns id,lower,upper,size; a life ends before step `upper` ----

void expect_ratio_below(const std::string& folder, double most) {
  const std::filesystem::path path = std::filesystem::path(TAPEDECK_SHARED_DIR) / "data" / folder;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no instances at " << path;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() != ".csv") continue;
    const std::vector<Tenant> buffers = test::read_instance(entry.path());
    const Offsets placed = place(buffers);
    ASSERT_NO_FATAL_FAILURE(expect_good(buffers, placed)) << entry.path();
    const double ratio = static_cast<double>(placed.end) / static_cast<double>(placed.bound);
    std::printf("%-24s %5zu buffers, end / bound = %.4f\n", entry.path().filename().c_str(), buffers.size(), ratio);
    EXPECT_LT(ratio, most) << entry.path();
  }
}

TEST(Place, ChallengingInstances) { expect_ratio_below("minimalloc", 1.45); }
TEST(Place, RealTrainingGraph) { expect_ratio_below("buffers", 1.01); }

}  // namespace
}  // namespace tapedeck
