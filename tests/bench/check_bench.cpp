// Measures the milliseconds that check_plan takes for plans of 1,000 to 100,000 values. The segments form one chain or four
// lanes; a segment has eight nodes or one. The time per value should stay about the same.
#include <tapedeck/capture/check/check_plan.h>

#include <tapedeck/tests/capture/large_plan.h>

#include <benchmark/benchmark.h>

namespace {

void check(benchmark::State& state) {
  const tapedeck::Plan plan = tapedeck::test::large_plan(static_cast<tapedeck::NodeId>(state.range(0)),
                                                         static_cast<int>(state.range(1)), static_cast<int>(state.range(2)));
  for (auto _ : state)
    if (!tapedeck::check_plan(plan).empty()) return state.SkipWithError("a sound plan is refused");
}
BENCHMARK(check)
    ->ArgNames({"values", "lanes", "nodes_a_segment"})
    ->ArgsProduct({{1000, 10000, 100000}, {1, 4}, {8}})
    ->ArgsProduct({{1000, 10000, 100000}, {1}, {1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
