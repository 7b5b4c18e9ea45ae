// A Plan as JSON, without its graph (which the file keeps as text) and without solve_ms (so that equal plans are equal bytes).
// Members that have their default value are left out, so a placement reads {"where":"arena","offset":2560,"birth":1,"death":4}.
//
// Each record is described once, by describe() below. The writer and the reader both walk that description, so they cannot
// diverge.
//
// The plans of regions, at any depth, stand in one table of the outermost plan, each once, plans of inner regions first. Every
// plan holds for each region of its graph the index of its plan in the table, or -1 for none:
//     {"schema":...,"values":[...],"region_plans":[{"values":[...]},{"values":[...],"regions":[0]}],"regions":[1,1,-1]}
// Their graphs are not stored: a region's plan has the region as its graph.
#include <tapedeck/capture/file/plan_json.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/plan/level_names.h>
#include <tapedeck/capture/planner/region_plans.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

namespace tapedeck {
namespace {

constexpr const char* kSchema = "tapedeck.plan_data/1";

// ---- the description ----

template <class V>
void describe(V&& field, std::type_identity<Placement>) {
  field("where", &Placement::where);
  field("reason", &Placement::reason);
  field("slot", &Placement::slot);
  field("offset", &Placement::offset);
  field("other", &Placement::other);
  field("reader", &Placement::reader);
  field("birth", &Placement::birth);
  field("death", &Placement::death);
  field("dense", &Placement::dense);
  field("strides", &Placement::strides);
}

template <class V>
void describe(V&& field, std::type_identity<Scratch>) {
  field("offset", &Scratch::offset);
  field("bytes", &Scratch::bytes);
}

template <class V>
void describe(V&& field, std::type_identity<Segment>) {
  field("nodes", &Segment::nodes);
  field("cost_us", &Segment::cost_us);
  field("successors", &Segment::successors);
  field("n_predecessors", &Segment::n_predecessors);
  field("end", &Segment::end);
}

template <class V>
void describe(V&& field, std::type_identity<SegmentRule>) {
  field("shape", &SegmentRule::shape);
  field("placement", &SegmentRule::placement);
  field("dispatch_us", &SegmentRule::dispatch_us);
  field("least_us", &SegmentRule::least_us);
  field("most_us", &SegmentRule::most_us);
  field("grain_us", &SegmentRule::grain_us);
  field("split_phases", &SegmentRule::split_phases);
  field("serial_us", &SegmentRule::serial_us);
  field("critical_path_us", &SegmentRule::critical_path_us);
  field("makespan_us", &SegmentRule::makespan_us);
  field("tight_makespan_us", &SegmentRule::tight_makespan_us);
  field("tight_peak_bytes", &SegmentRule::tight_peak_bytes);
}

template <class V>
void describe(V&& field, std::type_identity<Edge>) {
  field("before", &Edge::before);
  field("after", &Edge::after);
}

template <class V>
void describe(V&& field, std::type_identity<Decision>) {
  field("value", &Decision::value);
  field("bytes", &Decision::bytes);
  field("span", &Decision::span);
  field("cost_us", &Decision::cost_us);
  field("clones", &Decision::clones);
  field("live_peak_bytes", &Decision::live_peak_bytes);
  field("reason", &Decision::reason);
}

template <class V>
void describe(V&& field, std::type_identity<Wish>) {
  field("kind", &Wish::kind);
  field("pattern", &Wish::pattern);
}

template <class V>
void describe(V&& field, std::type_identity<PlanRequest>) {
  field("strategy", &PlanRequest::strategy);
  field("recorded_order", &PlanRequest::recorded_order);
  field("wishes", &PlanRequest::wishes);
  field("segment_us", &PlanRequest::segment_us);
  field("parallel_peak", &PlanRequest::parallel_peak);
}

template <class V>
void describe(V&& field, std::type_identity<Plan>) {
  field("level", &Plan::level);
  field("asked", &Plan::asked);
  field("strategy", &Plan::strategy);
  field("order", &Plan::order);
  field("feasible", &Plan::feasible);
  field("infeasible_reason", &Plan::infeasible_reason);
  field("alignment", &Plan::alignment);
  field("budget_bytes", &Plan::budget_bytes);
  field("arena_bytes", &Plan::arena_bytes);
  field("chunk_bytes", &Plan::chunk_bytes);
  field("chunks", &Plan::chunks);
  field("external_bytes", &Plan::external_bytes);
  field("peak_bytes", &Plan::peak_bytes);
  field("lower_bound_bytes", &Plan::lower_bound_bytes);
  field("floor_bytes", &Plan::floor_bytes);
  field("keep_all_peak_bytes", &Plan::keep_all_peak_bytes);
  field("cost_us", &Plan::cost_us);
  field("keep_all_cost_us", &Plan::keep_all_cost_us);
  field("cost_lower_bound_us", &Plan::cost_lower_bound_us);
  field("bound_from", &Plan::bound_from);
  field("nodes", &Plan::nodes);
  field("recomputed_nodes", &Plan::recomputed_nodes);
  field("values", &Plan::values);
  field("workspace", &Plan::workspace);
  field("segments", &Plan::segments);
  field("segment_rule", &Plan::segment_rule);
  field("intra_op", &Plan::intra_op);
  field("threads", &Plan::threads);
  field("costs", &Plan::costs);
  field("measured_nodes", &Plan::measured_nodes);
  field("reuse_edges", &Plan::reuse_edges);
  field("output_slots", &Plan::output_slots);
  field("decisions", &Plan::decisions);
  field("unchanged_state", &Plan::unchanged_state);
}

template <class T>
concept Record = requires(T r) {
  describe([](auto...) {}, std::type_identity<T>{});
};

const char* wish_kind_name(WishKind kind) { return kind == WishKind::keep ? "keep" : "recompute"; }

constexpr const char* kWhereNames[] = {"nowhere", "arena", "input", "state", "constant", "output"};

// ---- writing ----

template <Record R>
void put(JsonWriter& json, const R& record);

template <class T>
requires std::is_arithmetic_v<T>
void put(JsonWriter& json, T number) { json.value(number); }
void put(JsonWriter& json, const std::string& text) { json.value(std::string_view(text)); }
void put(JsonWriter& json, Where where) { json.value(kWhereNames[static_cast<int>(where)]); }
void put(JsonWriter& json, Reason reason) { json.value(reason_name(reason)); }
void put(JsonWriter& json, SegmentEnd end) { json.value(segment_end_name(end)); }
void put(JsonWriter& json, OptimizationLevel level) { json.value(level_name(level)); }
void put(JsonWriter& json, WishKind kind) { json.value(wish_kind_name(kind)); }

void put(JsonWriter& json, const Type& type) {  // ["f32",64,10]
  json.open('[').value(dtype_name(type.dtype));
  for (const std::int64_t size : type.shape) json.value(size);
  json.close(']');
}

void put(JsonWriter& json, const std::int64_t (&strides)[kMaxRank]) {
  json.open('[');
  for (const std::int64_t stride : strides) json.value(stride);
  json.close(']');
}

void put(JsonWriter& json, const std::vector<bool>& flags) {
  json.open('[');
  for (const bool flag : flags) json.value(flag ? 1 : 0);
  json.close(']');
}

template <class T>
void put(JsonWriter& json, const std::vector<T>& list) {
  json.open('[');
  for (const T& item : list) {
    if constexpr (Record<T>) json.line();
    put(json, item);
  }
  json.close(']');
}

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_array_v<T>)
    return std::equal(std::begin(a), std::end(a), std::begin(b));
  else
    return a == b;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.empty() && b.empty();
}

template <class R>
struct FieldWriter {
  JsonWriter& json;
  const R& record;
  const R& defaults;

  template <class T>
  void operator()(const char* name, T R::*member) const {
    if (same(record.*member, defaults.*member)) return;
    json.key(name);
    put(json, record.*member);
  }
};

template <class R>
void put_fields(JsonWriter& json, const R& record) {
  static const R defaults;
  describe(FieldWriter<R>{json, record, defaults}, std::type_identity<R>{});
}

template <Record R>
void put(JsonWriter& json, const R& record) {
  json.open('{');
  put_fields(json, record);
  json.close('}');
}

constexpr std::int64_t kNoPlan = -1;  // in a list of regions

// The plans of all nested graphs (the bodies of loops and branches) in a plan, at any depth. The file refers to them by index.
class RegionTable {
 public:
  explicit RegionTable(const Plan& plan) { add_regions(plan); }

  void put(JsonWriter& json, const Plan& outermost) const {
    if (!plans_.empty()) {
      json.key("region_plans").open('[');
      for (const Plan* plan : plans_) {
        json.line().open('{');
        put_fields(json, *plan);
        put_regions(json, *plan);
        json.close('}');
      }
      json.close(']');
    }
    put_regions(json, outermost);
  }

 private:
  void add_regions(const Plan& plan) {
    for (const auto& region : plan.region_plans) {
      if (!region || index_.count(region.get())) continue;
      add_regions(*region);
      index_.emplace(region.get(), static_cast<std::int64_t>(plans_.size()));
      plans_.push_back(region.get());
    }
  }

  void put_regions(JsonWriter& json, const Plan& plan) const {
    if (plan.region_plans.empty()) return;
    json.key("regions").open('[');
    for (const auto& region : plan.region_plans) json.value(region ? index_.at(region.get()) : kNoPlan);
    json.close(']');
  }

  std::vector<const Plan*> plans_;  // those in a plan before the plan
  std::map<const Plan*, std::int64_t> index_;
};

// ---- reading ----

template <Record R>
void get(JsonValue json, R& record);

void get(JsonValue json, bool& flag) { flag = json.as_bool(); }
void get(JsonValue json, double& number) { number = json.as_real(); }
void get(JsonValue json, std::int64_t& number) { number = json.as_integer(); }
void get(JsonValue json, std::int32_t& number) {
  const std::int64_t wide = json.as_integer();
  if (!std::in_range<std::int32_t>(wide)) throw JsonError(fmt::format("{} is out of range", wide));
  number = static_cast<std::int32_t>(wide);
}
void get(JsonValue json, std::string& text) { text = json.as_string(); }

void get(JsonValue json, Where& where) {
  const auto it = std::find(std::begin(kWhereNames), std::end(kWhereNames), json.as_string());
  if (it == std::end(kWhereNames)) throw JsonError(fmt::format("{} is no place", shown(json.as_string())));
  where = static_cast<Where>(it - std::begin(kWhereNames));
}

// One of an enumeration's names.
template <class E>
void get_named(JsonValue json, const char* (*name_of)(E), E last, const char* kind, E& out) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (json.as_string() == name_of(static_cast<E>(i))) {
      out = static_cast<E>(i);
      return;
    }
  throw JsonError(fmt::format("{} is no {}", shown(json.as_string()), kind));
}

void get(JsonValue json, Reason& reason) { get_named(json, reason_name, Reason::unread, "reason", reason); }
void get(JsonValue json, SegmentEnd& end) { get_named(json, segment_end_name, SegmentEnd::merged, "end of a segment", end); }
void get(JsonValue json, OptimizationLevel& level) {
  get_named(json, level_name, OptimizationLevel::fused, "level of optimization", level);
}
void get(JsonValue json, WishKind& kind) { get_named(json, wish_kind_name, WishKind::recompute, "kind of wish", kind); }

DType get_dtype(std::string_view name) {
  for (int d = 0; d < kDTypeCount; ++d)
    if (name == dtype_name(static_cast<DType>(d))) return static_cast<DType>(d);
  throw JsonError(fmt::format("{} is no dtype", shown(name)));
}

void get(JsonValue json, Type& type) {
  if (json.size() < 1 || json.size() > kMaxRank + 1) throw JsonError("not a type");
  std::int64_t sizes[kMaxRank];
  std::size_t n = 0;
  for (const JsonValue item : json.items()) {
    if (n == 0)
      type.dtype = get_dtype(item.as_string());
    else
      sizes[n - 1] = item.as_integer();
    ++n;
  }
  const std::span<const std::int64_t> dims(sizes, n - 1);
  if (checked_bytes(type.dtype, dims) < 0) throw JsonError("a size is negative, or the type larger than 64 TiB");
  type.shape = Shape(dims);
}

void get(JsonValue json, std::int64_t (&strides)[kMaxRank]) {
  if (json.size() != kMaxRank) throw JsonError(fmt::format("not {} strides", kMaxRank));
  std::size_t i = 0;
  for (const JsonValue item : json.items()) strides[i++] = item.as_integer();
}

void get(JsonValue json, std::vector<bool>& flags) {
  for (const JsonValue item : json.items()) {
    const std::int64_t flag = item.as_integer();
    if (flag != 0 && flag != 1) throw JsonError(fmt::format("{} is neither 0 nor 1", flag));
    flags.push_back(flag == 1);
  }
}

template <class T>
void get(JsonValue json, std::vector<T>& list) {
  const auto items = json.items();
  list.reserve(json.size());
  for (const JsonValue item : items) {
    try {
      get(item, list.emplace_back());
    } catch (const JsonError& e) {
      throw JsonError(fmt::format("[{}] {}", list.size() - 1, e.what()));
    }
  }
}

template <class R>
struct FieldReader {
  JsonValue object;
  R& record;

  template <class T>
  void operator()(const char* name, T R::*member) const {
    const auto value = object.find(name);
    if (!value) return;
    try {
      get(*value, record.*member);
    } catch (const JsonError& e) {
      throw JsonError(fmt::format("{}: {}", name, e.what()));
    }
  }
};

template <Record R>
void get(JsonValue json, R& record) {
  describe(FieldReader<R>{json, record}, std::type_identity<R>{});
}

// `table` holds the plans that stand before this one.
void get_regions(JsonValue json, const std::vector<std::shared_ptr<const Plan>>& table, Plan* plan) {
  const auto regions = json.find("regions");
  if (!regions) return;
  for (const JsonValue item : regions->items()) {
    const std::int64_t index = item.as_integer();
    if (index < kNoPlan || index >= static_cast<std::int64_t>(table.size()))
      throw JsonError(fmt::format("regions: {} is no earlier plan of a region", index));
    plan->region_plans.push_back(index == kNoPlan ? nullptr : table[index]);
  }
}

void get_region_plans(JsonValue root, Plan* outermost) {
  std::vector<std::shared_ptr<const Plan>> table;
  if (const auto plans = root.find("region_plans"))
    for (const JsonValue item : plans->items()) {
      Plan plan;
      try {
        get(item, plan);
        get_regions(item, table, &plan);
      } catch (const JsonError& e) {
        throw JsonError(fmt::format("region_plans: [{}] {}", table.size(), e.what()));
      }
      table.push_back(std::make_shared<const Plan>(std::move(plan)));
    }
  get_regions(root, table, outermost);
}

// Files from before segments could skip nodes give each as a run: {"first":3,"n_nodes":2}. All nodes together are no more than
// the plan has workspaces, so a hostile count fills no memory.
void get_former_segments(JsonValue root, Plan* plan) {
  const auto list = root.find("segments");
  if (!list) return;
  std::size_t s = 0, held = 0;
  for (const JsonValue item : list->items()) {
    Segment& segment = plan->segments[s++];
    const auto count = item.find("n_nodes");
    if (!count || !segment.nodes.empty()) continue;
    const auto first = item.find("first");
    const std::int64_t from = first ? first->as_integer() : 0, n = count->as_integer();
    if (from < 0 || n < 0 || held + static_cast<std::size_t>(n) > plan->workspace.size() ||
        from > static_cast<std::int64_t>(plan->workspace.size()))
      throw JsonError(fmt::format("segments: [{}] holds nodes that the plan does not have", s - 1));
    held += static_cast<std::size_t>(n);
    for (std::int64_t i = 0; i < n; ++i) segment.nodes.push_back(static_cast<NodeId>(from + i));
  }
}

// Each plan gets its graph: the outermost plan `graph`, the plans of regions the regions.
class GraphGiver {
 public:
  void give(Graph graph, Plan* plan) {
    plan->graph = std::move(graph);
    if (plan->region_plans.size() != plan->graph.regions.size())
      throw InvalidGraphError(fmt::format("the plan says which plans {} regions have, its graph has {} regions",
                                          plan->region_plans.size(), plan->graph.regions.size()));
    for (std::size_t r = 0; r < plan->region_plans.size(); ++r)
      if (plan->region_plans[r]) plan->region_plans[r] = given(plan->region_plans[r], &plan->graph.regions[r]);
  }

 private:
  // Regions that have one plan in common have equal graphs; check_plan() makes sure of it. The region becomes the graph of its
  // plan, not a copy.
  std::shared_ptr<const Plan> given(const std::shared_ptr<const Plan>& bare, Region* region) {
    const auto it = done_.find(bare.get());
    if (it != done_.end()) return it->second;
    Plan plan = *bare;
    give(**region, &plan);
    const auto whole = std::make_shared<const Plan>(std::move(plan));
    done_.emplace(bare.get(), whole);
    *region = Region(whole, &whole->graph);
    return whole;
  }

  std::map<const Plan*, std::shared_ptr<const Plan>> done_;  // by the plan without a graph
};

void check_counts(const Plan& plan, const Graph& graph) {
  if (plan.values.size() != graph.values.size() || plan.workspace.size() != graph.nodes.size())
    throw InvalidGraphError(fmt::format("the plan places {} values and {} nodes, its graph has {} and {}", plan.values.size(),
                                        plan.workspace.size(), graph.values.size(), graph.nodes.size()));
}

void check(const Plan& plan) {
  constexpr std::size_t kMostShown = 5;
  const std::vector<std::string> violations = check_plan(plan);
  if (violations.empty()) return;
  std::string message = fmt::format("the plan is invalid ({} violations)", violations.size());
  for (std::size_t i = 0; i < std::min(violations.size(), kMostShown); ++i) message += "\n  " + violations[i];
  throw InvalidGraphError(message);
}

}  // namespace

std::string plan_to_json(const Plan& plan) {
  JsonWriter json;
  json.open('{').key("schema").value(kSchema);
  put_fields(json, plan);
  RegionTable(plan).put(json, plan);
  json.close('}');
  return json.take() + '\n';
}

Plan read_plan_json(const std::string& json) {
  try {
    const JsonDocument document(json);
    const auto schema = document.root().find("schema");
    if (!schema || schema->as_string() != kSchema) throw JsonError(fmt::format("the schema is not {}", kSchema));
    Plan plan;
    get(document.root(), plan);
    get_former_segments(document.root(), &plan);
    get_region_plans(document.root(), &plan);
    return plan;
  } catch (const JsonError& e) {
    throw InvalidGraphError(fmt::format("not a readable plan: {}", e.what()));
  }
}

Plan parse_plan(const std::string& json, Graph planned_graph) {
  Plan plan = read_plan_json(json);
  check_counts(plan, planned_graph);
  if (plan.region_plans.empty()) {  // no regions, or written before plans held the plans of their regions
    plan.graph = std::move(planned_graph);
    plan_regions(&plan);
  } else {
    GraphGiver().give(std::move(planned_graph), &plan);
  }
  check(plan);
  return plan;
}

}  // namespace tapedeck
