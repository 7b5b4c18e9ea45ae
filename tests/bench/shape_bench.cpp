// Measures plans of models whose batch is a named dimension: milliseconds to plan the model at its largest size, to prove
// that the plan serves every size, and to fit the plan to one size. Each new size costs one fit, so a fit should be short
// beside planning.
#include <tapedeck/capture/planner/fit_plan_to_sizes.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/sizes/dim_rules.h>
#include <tapedeck/capture/sizes/retype.h>

#include <benchmark/benchmark.h>

#include <string>

namespace {

using namespace tapedeck;

Graph recorded_at(const char* model, std::int64_t batch) {
  ModelOptions options;
  options.batch = batch;
  options.abstract = true;
  return record_model(*find_model(model), options).graph;
}

Graph as_passes_leave(Graph g) {
  PassRunner passes;
  return prepare(std::move(g), &passes);
}

// The simplified graph of the model and the rules of its named dimension.
struct Sizes {
  explicit Sizes(const char* model) : recorded(recorded_at(model, 2)) {
    const Graph other = recorded_at(model, 3);
    table.dims = {{"b", 1, 64}};
    for (ValueId v = 0; v < recorded.n_inputs; ++v)
      for (int axis = 0; axis < recorded.values[v].type.shape.rank; ++axis)
        if (recorded.values[v].type.shape[axis] != other.values[v].type.shape[axis])
          table.axes.push_back({recorded.value_name(v), axis, 0});
    find_rules(&table, {{&recorded, {2}}, {&other, {3}}});
    largest = retype(recorded, table, {{"b", 64}});
    base = as_passes_leave(recorded);
    base_largest = as_passes_leave(largest);
    const Graph base_other = as_passes_leave(other);
    find_rules(&table, {{&base, {2}}, {&base_other, {3}}, {&base_largest, {64}}});
  }

  DimTable table;
  Graph recorded, largest, base, base_largest;
};

void plan(benchmark::State& state, const char* model) {
  const Sizes sizes(model);
  Plan plan;
  for (auto _ : state) plan = make_plan(sizes.largest);
}

void prove(benchmark::State& state, const char* model) {
  const Sizes sizes(model);
  const Plan plan = make_plan(sizes.largest);
  for (auto _ : state) {
    const Refit refit(sizes.base, sizes.table, sizes.base_largest, plan);
    if (!refit.obstacle().empty()) return state.SkipWithError(refit.obstacle().c_str());
  }
}

void fit(benchmark::State& state, const char* model) {
  const Sizes sizes(model);
  const Plan plan = make_plan(sizes.largest);
  const Refit refit(sizes.base, sizes.table, sizes.base_largest, plan);
  if (!refit.obstacle().empty()) return state.SkipWithError(refit.obstacle().c_str());
  std::string why;
  for (auto _ : state)
    if (!fit_plan(plan, refit.planned_graph(retype(sizes.base, sizes.table, {{"b", 37}})), &why))
      return state.SkipWithError(why.c_str());
}

BENCHMARK_CAPTURE(plan, vgg16, "vgg16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, vgg16, "vgg16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fit, vgg16, "vgg16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, gpt2, "gpt2")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt2, "gpt2")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fit, gpt2, "gpt2")->Unit(benchmark::kMillisecond);

}  // namespace
