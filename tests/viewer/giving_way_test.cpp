#include <tapedeck/viewer/planning/giving_way.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace tapedeck::viewer {
namespace {

int priority_of_this_thread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(GivingWay, OnlyThatThreadGivesWay) {
  constexpr int kLowest = 19;
  const int before = priority_of_this_thread();
  int inside = before;
  std::thread([&] {
    const GivingWay way;
    inside = priority_of_this_thread();
  }).join();
  if (before < kLowest) {
    EXPECT_GT(inside, before);
  }
  EXPECT_EQ(priority_of_this_thread(), before);
}

}  // namespace
}  // namespace tapedeck::viewer
