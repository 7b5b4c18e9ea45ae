// Tests pools with several threads: members run one at a time. A run on another thread at the same time is refused with an
// error that names both members; there is no race.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>
#include <tapedeck/tests/engine/messages.h>

#include <atomic>
#include <thread>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

TEST(ReplayPool, AnotherMembersRunIsRefusedNamingBoth) {
  const auto pool = new_pool();
  const Graph slow = parse(R"(graph slow(%a: f32[600,600]) {
    %b: f32[600,600] = matmul(%a, %a)
    %c: f32[600,600] = matmul(%b, %a)
    return %c
  })");
  Executor long_one(make_plan(slow), {.pool = pool, .name = "long"});
  Executor short_one(make_plan(net("short", 2, false)), {.pool = pool});
  set_weights(short_one);
  short_one.set_input("x", value("x", f32({2, 16})));
  long_one.set_input("a", value("a", f32({600, 600})));
  std::atomic<bool> done{false};
  std::thread thread([&] {
    for (int ran = 0; ran < 20 && !done;) {
      try {
        long_one.run();
        ++ran;
      } catch (const ExecutionError&) {
      }
    }
    done = true;
  });
  std::string refused;
  while (!done && refused.empty()) {
    try {
      short_one.run();
    } catch (const ExecutionError& e) {
      refused = e.what();
    }
  }
  done = true;
  thread.join();
  EXPECT_TRUE(mentions(
      refused, "run: the executor of 'short' cannot be used now: 'long', which shares its memory, is in use by another thread"))
      << refused;
  short_one.run();
}

// Members are made, run and destroyed on several threads. A run may be refused, but there is no race, and every accepted run
// gives the right results.
TEST(ReplayPool, MembersOfManyThreadsAreRefusedNeverRaced) {
  const auto pool = new_pool();
  const Graph infer = net("infer", 3, false);
  Executor anchor(make_plan(infer), {.pool = pool});
  set_weights(anchor);
  const std::vector<Tensor> state = {value("w", f32({16, 16})), value("b", f32({16}))};
  std::atomic<int> ran{0}, refused{0}, wrong{0};
  const auto work = [&](int id) {
    for (int round = 0; round < 15; ++round) {
      const Graph g = net("member", 1 + (id * 7 + round * 3) % 20, false);
      const Tensor x = value("x", g.values[0].type, static_cast<std::uint64_t>(round));
      const Tensor right = run_eagerly(g, {x}, state).outputs[0];
      Executor member(make_plan(g), {.threads = 1 + id % 2, .pool = pool, .name = "member " + std::to_string(id)});
      for (bool fine = false; !fine;) {
        try {
          member.set_input("x", x);
          member.run();
          if (!bit_equal(member.outputs()[0], right)) ++wrong;
          ++ran;
          fine = true;
        } catch (const ExecutionError&) {
          ++refused;
          std::this_thread::yield();
        }
      }
      pool->explain();
    }
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) threads.emplace_back(work, id);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ran, 60);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool->report().members.size(), 1u);
  anchor.set_input("x", value("x", f32({3, 16})));
  anchor.run();
  EXPECT_TRUE(bit_equal(anchor.outputs()[0], run_eagerly(infer, {value("x", f32({3, 16}))}, state).outputs[0]));
}

}  // namespace
}  // namespace tapedeck
