// Tests that long work gives way to the thread that draws: only its own thread does, and its errors arrive.
#include <tapedeck/viewer/planning/giving_way.h>

#include <tapedeck/capture/planner/search_beside.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace tapedeck::viewer {
namespace {

int priority_of_this_thread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(GivingWay, OnlyThatThreadGivesWay) {
  constexpr int kLowest = 19;
  const int before = priority_of_this_thread();
  int inside = before, again = before;
  std::thread([&] {
    give_way([&] { inside = priority_of_this_thread(); });
    give_way([&] { again = priority_of_this_thread(); });
  }).join();
  if (before < kLowest && threads_beside() == 1) {
    EXPECT_GT(inside, before);
  }
  EXPECT_EQ(again, inside);  // lowered once
  EXPECT_EQ(priority_of_this_thread(), before);
}

TEST(GivingWay, HandsOnTheExceptionOfTheWork) {
  std::string caught;
  std::thread([&] {
    try {
      give_way([] { throw std::runtime_error("no plan"); });
    } catch (const std::exception& error) {
      caught = error.what();
    }
  }).join();
  EXPECT_EQ(caught, "no plan");
}

}  // namespace
}  // namespace tapedeck::viewer
