#include <tapedeck/tests/allocation/every_allocation.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/tests/allocation/failures.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace tapedeck::test {
namespace {

// The builds with sanitizers are slow, so only every 11th allocation fails there. Ordinary builds try every one.
#ifdef TAPEDECK_SANITIZED
constexpr std::size_t kEvery = 11;
#else
constexpr std::size_t kEvery = 1;
#endif

using Call = std::function<std::string()>;

// Runs f so that all allocations are those of one thread.
void alone(bool own_thread, const std::function<void()>& f) {
  const auto body = [&f] {
    const kernels::OneThreadScope one_thread;
    const CountBytes count;
    f();
  };
  if (own_thread)
    std::thread(body).join();
  else
    body();
}

// Whether the call threw. A call that did without the memory must give what it always gives.
bool throws(const Call& call, const std::string& wanted) {
  try {
    EXPECT_EQ(call(), wanted);
    return false;
  } catch (const std::bad_alloc&) {
  } catch (const Error&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another kind: " << error.what();
  }
  return true;
}

// The numbers of the allocations that are to fail. The last number says how many allocations there are.
std::vector<long> numbers(const EveryAllocation& how, const Call& call, std::size_t* stacks, long* allocations) {
  std::vector<long> first;
  alone(how.own_threads, [&] {
    const DistinctStacks distinct;
    {
      const FailAllocation none;
      call();
      *allocations = none.counted();
    }
    first = distinct.first();
  });
  *stacks = first.size();
  if (!how.once_per_stack) {
    first.resize(static_cast<std::size_t>(*allocations));
    std::iota(first.begin(), first.end(), 1);
  }
  std::sort(first.begin(), first.end());
  return first;
}

}  // namespace

void fail_every_allocation(const EveryAllocation& how, const Call& call) {
  std::string wanted, found;
  for (int warm = 0; warm < 3; ++warm) alone(how.own_threads, [&] { wanted = call(); });
  alone(how.own_threads, [&] {  // what the first error of a program leaves is no leak
    const FailAllocation fail(1);
    throws(call, wanted);
  });
  std::size_t stacks = 0;
  long allocations = 0, tried = 0, threw = 0, absent = 0;
  const std::vector<long> ks = numbers(how, call, &stacks, &allocations);
  // Tables by address are laid out anew in every call, so a call may make a few allocations less.
  const long last_sure = allocations - std::max(2L, allocations / 100);
  alone(how.own_threads, [&] { found = call(); });
  std::int64_t live = live_bytes();
  for (std::size_t i = 0; i < ks.size(); i += how.every * kEvery) {
    bool failed = false;
    alone(how.own_threads, [&] {
      {
        const FailAllocation fail(ks[i]);
        threw += throws(call, wanted);
        failed = fail.failed();
      }
      found = call();
    });
    absent += !failed;
    if (!failed) {
      EXPECT_GT(ks[i], last_sure) << how.name << ": the call did without this allocation, of " << allocations;
    }
    ASSERT_EQ(found, wanted) << how.name << ", after allocation " << ks[i] << " has failed";
    EXPECT_LE(live_bytes(), live) << how.name << ": bytes after allocation " << ks[i] << " has failed, and before";
    live = std::max(live, live_bytes());
    ++tried;
  }
  fmt::print("[          ] {}: {} allocations from {} call stacks; {} failed, {} calls threw\n", how.name, allocations, stacks,
             tried - absent, threw);
}

}  // namespace tapedeck::test
