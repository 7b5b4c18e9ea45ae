#include <tapedeck/viewer/plan/release_later.h>

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace tapedeck::viewer {
namespace {

// Says in which thread it is destroyed.
struct Witness {
  std::promise<std::thread::id> destroyed;
  ~Witness() { destroyed.set_value(std::this_thread::get_id()); }
};

TEST(ReleaseLater, AnotherThreadDestroysTheObject) {
  auto witness = std::make_shared<Witness>();
  std::future<std::thread::id> where = witness->destroyed.get_future();
  release_later(std::exchange(witness, nullptr));
  EXPECT_NE(where.get(), std::this_thread::get_id());
  release_later(nullptr);
}

TEST(ReleaseLater, WhoeverDropsTheLastReference) {
  auto made = std::make_unique<Witness>();
  std::future<std::thread::id> where = made->destroyed.get_future();
  std::shared_ptr<const Witness> one = released_later(std::unique_ptr<const Witness>(std::move(made))), other = one;
  one.reset();
  EXPECT_EQ(where.wait_for(std::chrono::milliseconds(1)), std::future_status::timeout);
  other.reset();
  EXPECT_NE(where.get(), std::this_thread::get_id());
}

// An object may hold others that are released later, too.
struct Chain {
  std::shared_ptr<const void> next;
  ~Chain() { release_later(std::move(next)); }
};

TEST(ReleaseLater, ADestructorMayReleaseMore) {
  auto witness = std::make_shared<Witness>();
  std::future<std::thread::id> where = witness->destroyed.get_future();
  auto chain = std::make_shared<Chain>();
  chain->next = std::exchange(witness, nullptr);
  release_later(std::exchange(chain, nullptr));
  EXPECT_NE(where.get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace tapedeck::viewer
