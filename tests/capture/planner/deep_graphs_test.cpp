// Graphs with long chains are planned and exported on a small stack. A function that called itself once for each node of a
// chain would need some megabytes of it.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/explain/chrome_trace.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/timelines.h>

#include <gtest/gtest.h>

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

constexpr int kLength = 20'000;
constexpr std::size_t kStackBytes = 256 << 10;

void run_on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  const auto call = [](void* p) -> void* {
    (*static_cast<std::function<void()>*>(p))();
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// The pass fold_views would make one view out of a chain of views.
class WithoutFoldViews {
 public:
  WithoutFoldViews() { ::setenv("TAPEDECK_DISABLE_PASSES", "fold_views", 1); }
  ~WithoutFoldViews() { ::unsetenv("TAPEDECK_DISABLE_PASSES"); }
};

// The plan of `text`, made and exported on a small stack.
Plan planned(const std::string& text, Strategy strategy) {
  Plan plan;
  run_on_small_stack([&] {
    PlanOptions options;
    options.strategy = strategy;
    options.find_floor = false;
    options.place_work = 0;
    plan = make_plan(parse(text), options);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>());
    EXPECT_FALSE(plan_to_json(plan).empty());
    const Timeline run = test::serial_timeline(plan);
    EXPECT_FALSE(chrome_trace(plan, {&run, 1}).empty());
  });
  return plan;
}

std::int64_t clones(const Plan& plan) {
  return std::count_if(plan.graph.nodes.begin(), plan.graph.nodes.end(), [](const Node& n) { return n.origin.clone; });
}

// %v0 = tanh(%x); %v1 = tanh(%v0); ... in one region, and backward reads the last.
std::string chain_of_nodes() {
  std::string text = "graph chain(%x: f32[4]) {\n  %v0: f32[4] = tanh(%x) [region=0]\n";
  for (int i = 1; i < kLength; ++i)
    text += "%v" + std::to_string(i) + ": f32[4] = tanh(%v" + std::to_string(i - 1) + ") [region=0]\n";
  return text + "%g: f32[4] = exp(%v" + std::to_string(kLength - 1) + ") [phase=backward]\nreturn %g\n}\n";
}

std::string transposed(int first, int last, const std::string& notes) {
  std::string text;
  for (int i = first; i < last; ++i)
    text += "%v" + std::to_string(i) + ": f32[" + (i % 2 ? "3,2" : "2,3") + "] = transpose(%v" + std::to_string(i - 1) +
            ") {axes=[1,0]}" + notes + "\n";
  return text;
}

// Each view shows the view before it. Backward reads the last view. So Strategy::regions makes %v0 and all views again there,
// and Strategy::none keeps them.
std::string chain_of_views() {
  const std::string last = "%v" + std::to_string(kLength);
  return "graph views(%x: f32[2,3]) {\n  %v0: f32[2,3] = exp(%x) [region=0]\n" + transposed(1, kLength + 1, " [region=0]") +
         "%t: f32[2,3] = tanh(" + last + ") [region=0]\n%s: f32[2,3] = exp(%t)\n" + "%g: f32[2,3] = mul(%s, " + last +
         ") [phase=backward]\nreturn %g\n}\n";
}

// %v0 may lie in the bytes of the join if all readers of its views can read it there.
std::string views_of_a_part() {
  const std::string last = "%v" + std::to_string(kLength);
  return "graph part(%x: f32[2,3]) {\n  %v0: f32[2,3] = exp(%x)\n" + transposed(1, kLength + 1, "") +
         "%j: f32[4,3] = concat(%v0, %x) {axis=0}\n%e: f32[4,3] = exp(%j)\n" + "%t: f32[2,3] = tanh(" + last +
         ")\nreturn %e, %t\n}\n";
}

TEST(DeepGraphs, AChainOfNodesInARegionIsPlanned) {
  planned(chain_of_nodes(), Strategy::regions);
  planned(chain_of_nodes(), Strategy::none);
}

TEST(DeepGraphs, AChainOfViewsInARegionIsMadeAgain) {
  const WithoutFoldViews disabled;
  EXPECT_GE(clones(planned(chain_of_views(), Strategy::regions)), kLength);
  EXPECT_EQ(clones(planned(chain_of_views(), Strategy::none)), 0);
}

TEST(DeepGraphs, APartWithAChainOfViewsIsWrittenInPlace) {
  const WithoutFoldViews disabled;
  const Plan plan = planned(views_of_a_part(), Strategy::none);
  EXPECT_EQ(std::count_if(plan.values.begin(), plan.values.end(), [](const Placement& p) { return p.reason == Reason::part; }),
            1);
}

}  // namespace
}  // namespace tapedeck
