// Text -> plan -> check -> replay, within bounds. The first byte chooses the options of the plan, the rest is the text.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

PlanOptions options_of(std::uint8_t choice) {
  PlanOptions options;
  options.sharing = choice & 4 ? Sharing::none : Sharing::all;
  options.chunk_bytes = choice & 8 ? 256 : 0;
  options.threads = choice & 16 ? 4 : 1;
  options.segment_us = choice & 32 ? 0 : 50;
  options.place_work = 1000;
  return options;
}

// The budget that the choice asks for: none, the floor, or a part of what lies between the floor and the peak.
std::int64_t budget_of(std::uint8_t choice, const Plan& unbound) {
  const std::int64_t span = unbound.peak_bytes - unbound.floor_bytes;
  switch (choice & 3) {
    case 0:
      return -1;
    case 1:
      return unbound.floor_bytes;
    case 2:
      return unbound.floor_bytes + span / 3;
    default:
      return unbound.floor_bytes + span / 3 * 2;
  }
}

void check(const Plan& plan) {
  for (const std::string& violation : check_plan(plan)) fuzz::find("the checker refuses a plan of the planner: " + violation);
  for (const std::string& violation : check_clones(plan)) fuzz::find("the checker refuses a plan of the planner: " + violation);
}

void plan_and_replay(std::uint8_t choice, std::string_view text) {
  const Graph graph = parse(text, "fuzz");
  if (!fuzz::can_run(graph)) return;
  PlanOptions options = options_of(choice);
  options.find_floor = choice & 3;
  Plan plan = make_plan(graph, options);
  check(plan);
  if (options.find_floor) {
    options.budget = budget_of(choice, plan);
    plan = make_plan(graph, options);
    check(plan);
    if (!plan.feasible) fuzz::find("no plan for a budget at or above the floor: " + plan.infeasible_reason);
  }
  fuzz::replay_and_compare(plan, graph);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  fuzz::expect_only_errors([&] { plan_and_replay(data[0], fuzz::text_of(data + 1, size - 1)); });
  return 0;
}
