// The judge of plans. First the structure: sizes of lists, ranges of indices, sums of bytes. Only then the other files look at
// the contents, because they use the indices without asking again:
//     structure -> regions -> placements -> lifetimes -> happens_before
// Each step appends sentences. A step runs only if the steps that it relies on found nothing.
#include <tapedeck/capture/check/check_plan.h>

#include <tapedeck/capture/check/checks.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/kernels/checked_math.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

// ---- structure ----

bool in_range(std::int64_t i, std::int64_t n) { return i >= 0 && i < n; }

bool shares_bytes(const Placement& p) { return p.reason == Reason::alias || p.reason == Reason::in_place; }

void check_indices(const Plan& plan, Violations* out) {
  const Graph& g = plan.graph;
  const auto slots_of = [&](Where where) -> std::int64_t {
    switch (where) {
      case Where::input:
        return g.n_inputs;
      case Where::state:
        return g.n_state;
      case Where::constant:
        return static_cast<std::int64_t>(g.constants.size());
      case Where::output:
        return static_cast<std::int64_t>(plan.output_slots.size());
      default:
        return -1;
    }
  };
  const auto node_or_none = [&](NodeId n) { return n == kNone || in_range(n, static_cast<std::int64_t>(g.nodes.size()) + 1); };
  for (ValueId v = 0; v < g.value_count() && out->size() < kMostViolations; ++v) {
    const Placement& p = plan.values[v];
    const bool enums = static_cast<int>(p.where) <= static_cast<int>(Where::output) &&
                       static_cast<int>(p.reason) <= static_cast<int>(Reason::unread);
    if (!enums || p.where == Where::nowhere)
      out->push_back(fmt::format("%{} lies nowhere", g.value_name(v)));
    else if (p.where != Where::arena && !in_range(p.slot, slots_of(p.where)))
      out->push_back(fmt::format("%{} lies in a buffer that does not exist", g.value_name(v)));
    else if (shares_bytes(p) && !in_range(p.other, v))
      out->push_back(fmt::format("%{} shares the bytes of no earlier value", g.value_name(v)));
    else if (p.reason == Reason::part &&
             !(p.other > v && p.other < g.value_count() && plan.values[p.other].reason != Reason::alias))
      out->push_back(fmt::format("%{} is a part of no later value", g.value_name(v)));
    else if (!node_or_none(p.birth) || !node_or_none(p.death) || !node_or_none(p.reader))
      out->push_back(fmt::format("%{} has a lifetime beyond the graph", g.value_name(v)));
  }
}

// The parts below, and the readers of plans, add offsets, sizes and gaps to the bytes of a plan. No such sum overflows below
// this limit.
constexpr std::int64_t kMostPlanBytes = std::int64_t{1} << 62;

void check_sizes(const Plan& plan, Violations* out) {
  const Graph& g = plan.graph;
  std::int64_t external = 0;
  const auto add = [&external](const Type& type) { external = limited_sum({external, type.bytes()}); };
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) add(g.values[v].type);
  std::vector<char> used(g.constants.size(), 0);
  for (ValueId v = 0; v < g.value_count(); ++v) {
    const Placement& p = plan.values[v];
    if (p.where != Where::constant || p.reason == Reason::alias || used[p.slot]) continue;
    used[p.slot] = 1;
    add(g.constants[p.slot].type);
  }
  for (const Type& slot : plan.output_slots) add(slot);
  if (external > kMostPlanBytes) return out->push_back("inputs, state, constants and outputs hold more than 2^62 bytes");
  if (plan.peak_bytes > kMostPlanBytes) return out->push_back(fmt::format("peak_bytes is {}, more than 2^62", plan.peak_bytes));
  if (plan.external_bytes != external)
    out->push_back(
        fmt::format("external_bytes is {}, but inputs, state, constants and outputs are {}", plan.external_bytes, external));
  const bool adds_up =
      plan.arena_bytes >= 0 && plan.arena_bytes <= plan.peak_bytes && plan.peak_bytes - plan.arena_bytes == plan.external_bytes;
  if (!adds_up)
    out->push_back(fmt::format("peak_bytes {} is not external_bytes {} + arena_bytes {}", plan.peak_bytes, plan.external_bytes,
                               plan.arena_bytes));
  if (plan.lower_bound_bytes < 0 || plan.lower_bound_bytes > plan.peak_bytes)
    out->push_back("the lower bound is negative or above the peak");
  if (plan.floor_bytes < 0 || plan.keep_all_peak_bytes < 0) out->push_back("the floor or the keep-all peak is negative");
  if (plan.feasible && plan.floor_bytes > plan.peak_bytes) out->push_back("the floor is above the peak");
  if (plan.feasible && plan.budget_bytes >= 0 && plan.peak_bytes > plan.budget_bytes)
    out->push_back(fmt::format("peak_bytes {} is over the budget {}", plan.peak_bytes, plan.budget_bytes));
  if (plan.alignment <= 0 || plan.alignment > (std::int64_t{1} << 30) || (plan.alignment & (plan.alignment - 1)) != 0)
    out->push_back(fmt::format("alignment {} is not a power of two up to 2^30", plan.alignment));
}

// Adds the sizes of the chunks without overflow, however large they are.
void check_chunks(const Plan& plan, Violations* out) {
  if (plan.chunk_bytes < 0) out->push_back(fmt::format("chunk_bytes is {}", plan.chunk_bytes));
  if (plan.chunks.empty()) {
    if (plan.chunk_bytes > 0 && plan.arena_bytes > 0) out->push_back("the arena is to be in chunks, and there are none");
    return;
  }
  if (plan.chunk_bytes <= 0) return out->push_back("there are chunks, and the arena is to be one block");
  std::int64_t rest = plan.arena_bytes;
  for (const std::int64_t bytes : plan.chunks) {
    if (bytes <= 0) return out->push_back(fmt::format("a chunk of {} bytes holds nothing", bytes));
    if (bytes > rest) return out->push_back(fmt::format("the chunks are more than arena_bytes {}", plan.arena_bytes));
    rest -= bytes;
  }
  if (rest > 0) out->push_back(fmt::format("the chunks are {} bytes less than arena_bytes {}", rest, plan.arena_bytes));
}

bool type_is_sound(const Type& t) {
  return static_cast<int>(t.dtype) < kDTypeCount && t.shape.rank >= 0 && t.shape.rank <= kMaxRank &&
         checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) >= 0;
}

}  // namespace

void check_structure(const Plan& plan, Violations* out) {
  try {
    verify(plan.graph);  // verify() also checks every index before it uses it
  } catch (const Error& e) {
    return out->push_back(e.what());
  }
  if (plan.values.size() != plan.graph.values.size()) return out->push_back("there is not one placement for each value");
  if (plan.workspace.size() != plan.graph.nodes.size()) return out->push_back("there is not one workspace for each node");
  if (plan.region_plans.size() != plan.graph.regions.size())
    return out->push_back("there is not one plan, or its absence, for each region");
  if (!plan.intra_op.empty() && plan.intra_op.size() != plan.graph.nodes.size())
    return out->push_back("intra_op does not say for each node whether its kernel may use idle threads");
  if (plan.threads < 1) out->push_back("the plan is for less than one thread");
  if (!std::all_of(plan.output_slots.begin(), plan.output_slots.end(), type_is_sound))
    return out->push_back("an output slot has a bad type");
  if (plan.output_slots.size() > plan.graph.outputs.size()) return out->push_back("there are more output slots than outputs");
  check_indices(plan, out);
  check_chunks(plan, out);
  if (out->empty()) check_sizes(plan, out);
}

std::vector<ValueId> bytes_owner(const Plan& plan) {
  std::vector<ValueId> owner(plan.values.size());
  for (auto v = static_cast<ValueId>(owner.size()); v-- > 0;)
    owner[v] = plan.values[v].reason == Reason::part ? owner[plan.values[v].other] : v;
  for (ValueId v = 0; v < static_cast<ValueId>(owner.size()); ++v)
    if (plan.values[v].reason == Reason::alias) owner[v] = owner[plan.values[v].other];
  return owner;
}

std::vector<std::string> check_plan(const Plan& plan) {
  Violations found;
  check_structure(plan, &found);
  for (const auto& check : {check_regions, check_placements, check_lifetimes, check_order}) {
    stop_if_interrupted();
    if (found.empty()) check(plan, &found);
  }
  return found;
}

}  // namespace tapedeck
