// Turns a plan into rectangles and curves; see plan_model.h.
//
//   address |  +--------+ arena: one rectangle per value, from its birth to the end of its last view
//           |  +--------+--------+
//           |=====================  external buffers: rectangles through the whole schedule
//           +----------------------> node
#include <tapedeck/viewer/plan/plan_model.h>

#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/plan/same_step.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace tapedeck::viewer {

namespace {

std::atomic<std::uint64_t> serials{0};  // atomic, because the worker's thread makes models as well

// The lifetime of a value, clipped to the schedule: [begin_of, end_of).
NodeId begin_of(const Placement& p) { return std::max<NodeId>(p.birth, 0); }
NodeId end_of(const Placement& p, NodeId nodes) {
  return std::clamp<NodeId>(p.death == kNone ? begin_of(p) + 1 : p.death + 1, begin_of(p) + 1,
                            std::max(nodes, begin_of(p) + 1));
}

// True for a view of another value's bytes, and for a part of a value that joins it with others: such a value has no bytes of
// its own.
bool lies_in_another(const Placement& p) { return p.reason == Reason::alias || p.reason == Reason::part; }

// The value that owns the bytes of v, found through any number of steps. The number of steps is limited, in case a faulty plan
// has a cycle.
ValueId root_of(const Plan& plan, ValueId v) {
  for (std::size_t steps = 0; steps < plan.values.size(); ++steps) {
    const Placement& p = plan.values[at(v)];
    if (!lies_in_another(p) || p.other == kNone) break;
    v = p.other;
  }
  return v;
}

PlanRect rect_of(const Plan& plan, ValueId v, NodeId begin, NodeId end, std::int64_t address, std::int64_t bytes) {
  return {v, plan.graph.values[at(v)].node, begin, end, address, bytes, role_of(plan, v)};
}

}  // namespace

RoleClass role_of(const Plan& plan, ValueId v) { return static_cast<RoleClass>(memory_role(plan, v)); }

struct PlanModel::Later {
  std::shared_ptr<const CostModel> costs;
  std::vector<Wish> wishes;
  std::once_flag values_once, nodes_once, shared_once, alive_once, axis_once, segments_once, table_once[kTableCount];
  std::vector<std::int32_t> segment_of;  // by node
  std::optional<ValueIndex> values;
  std::optional<NodesByValue> nodes;
  std::optional<SharedBytes> shared;
  std::shared_ptr<const TimeAxis> by_node = std::make_shared<const TimeAxis>(), by_us;
  std::optional<Table> tables[kTableCount];
  std::vector<PlanRect> alive_at_peak;
  std::atomic<bool> complete{true};  // else another thread makes what is missing
};

PlanModel::PlanModel(std::shared_ptr<const Plan> plan, std::vector<std::int64_t> curve, std::shared_ptr<const CostModel> costs,
                     std::vector<Wish> wishes)
    : serial_(++serials), plan_(std::move(plan)), curve_(std::move(curve)), later_(std::make_shared<Later>()) {
  later_->costs = std::move(costs);
  later_->wishes = std::move(wishes);
  maxima_ = BlockMaxima(curve_);
  lay_out_externals();
  lay_out_arena();
  first_rect_.assign(plan_->values.size(), kNone);
  next_rect_.assign(rects_.size(), kNone);
  for (std::size_t i = rects_.size(); i-- > 0;) {
    if (rects_[i].value == kNone) continue;
    next_rect_[i] = std::exchange(first_rect_[at(rects_[i].value)], static_cast<std::int32_t>(i));
  }
  sum_roles();
  for (const Node& node : plan_->graph.nodes)
    phases_[node.origin.clone ? kClonePhase : static_cast<std::size_t>(node.origin.phase)] = true;
  if (!curve_.empty()) peak_node_ = static_cast<NodeId>(std::max_element(curve_.begin(), curve_.end()) - curve_.begin());
}

std::shared_ptr<const PlanModel> PlanModel::of(Plan plan, std::shared_ptr<const CostModel> costs, std::vector<Wish> wishes) {
  std::shared_ptr<const PlanModel> model = pictures_of(std::move(plan), std::move(costs), std::move(wishes));
  model->complete();
  return model;
}

std::shared_ptr<const PlanModel> PlanModel::pictures_of(Plan plan, std::shared_ptr<const CostModel> costs,
                                                        std::vector<Wish> wishes) {
  auto shared = std::make_shared<const Plan>(std::move(plan));
  auto model = std::make_unique<const PlanModel>(shared, live_bytes(*shared), std::move(costs), std::move(wishes));
  model->alive_at_peak();
  model->shared_bytes();
  model->later_->complete = false;
  return released_later(std::move(model));
}

void PlanModel::complete() const {
  for (int id = 0; id < kTableCount; ++id) {
    const Table& made = table(static_cast<TableId>(id));
    for (const RowOrder& by : noted_orders(static_cast<TableId>(id))) made.order(by);
  }
  nodes_by_value();
  alive_at_peak();
  if (nodes() > 0) segment_of(0);
  later_->complete = true;
}

bool PlanModel::is_complete() const { return later_->complete; }

// In a plan without clones every value has the name that stands in the graph.
std::string PlanModel::name_of(ValueId v) const {
  return plan_->recomputed_nodes == 0 && !is_complete() ? "%" + graph().value_name(v) : values().name(v);
}

const ValueIndex& PlanModel::values() const {
  std::call_once(later_->values_once, [&] { later_->values.emplace(*plan_, later_->costs.get(), later_->wishes); });
  return *later_->values;
}

const NodesByValue& PlanModel::nodes_by_value() const {
  std::call_once(later_->nodes_once, [&] { later_->nodes.emplace(plan_->graph); });
  return *later_->nodes;
}

const SharedBytes& PlanModel::shared_bytes() const {
  std::call_once(later_->shared_once, [&] { later_->shared.emplace(*plan_); });
  return *later_->shared;
}

std::shared_ptr<const TimeAxis> PlanModel::time_axis(TimeUnit unit) const {
  if (unit == TimeUnit::nodes) return later_->by_node;
  std::call_once(later_->axis_once, [&] {
    std::vector<double> us;
    for (NodeId n = 0; n < nodes(); ++n) us.push_back(values().node_us(n));
    later_->by_us = std::make_shared<const TimeAxis>(us);
  });
  return later_->by_us;
}

std::int32_t PlanModel::segment_of(NodeId n) const {
  std::call_once(later_->segments_once, [&] {
    later_->segment_of.assign(at(nodes()), kNone);
    for (std::size_t s = 0; s < plan_->segments.size(); ++s)
      for (const NodeId in : plan_->segments[s].nodes) later_->segment_of[at(in)] = static_cast<std::int32_t>(s);
  });
  return later_->segment_of[at(n)];
}

const CostModel* PlanModel::costs() const { return later_->costs.get(); }

const Table& PlanModel::table(TableId id) const {
  const int i = static_cast<int>(id);
  std::call_once(later_->table_once[i], [&] { later_->tables[i].emplace(make_table(id, *this)); });
  return *later_->tables[i];
}

// State lies at the bottom, then constants, inputs and outputs: a buffer that outlives the step longer lies lower. Several
// values may use one buffer in turn (a parameter and its new value); the buffer counts once.
void PlanModel::lay_out_externals() {
  struct Buffer {
    std::int64_t bytes = 0;
    std::vector<ValueId> values;
  };
  static constexpr Where order[] = {Where::state, Where::constant, Where::input, Where::output};
  const NodeId nodes = plan_->graph.node_count();
  for (Where where : order) {
    std::map<std::int32_t, Buffer> buffers;
    for (ValueId v = 0; v < plan_->graph.value_count(); ++v) {
      const Placement& p = plan_->values[at(v)];
      if (p.where != where || lies_in_another(p)) continue;
      Buffer& buffer = buffers[p.slot];
      buffer.values.push_back(v);
      buffer.bytes = std::max(buffer.bytes, p.offset + plan_->graph.values[at(v)].type.bytes());
    }
    if (where == Where::output)
      for (auto& [slot, buffer] : buffers)
        if (slot >= 0 && at(slot) < plan_->output_slots.size()) buffer.bytes = plan_->output_slots[at(slot)].bytes();
    for (const auto& [slot, buffer] : buffers) {
      // The buffer exists from the first node to the last. Its first user is drawn as the whole buffer, and later users are
      // drawn over it.
      for (std::size_t i = 0; i < buffer.values.size(); ++i) {
        const Placement& p = plan_->values[at(buffer.values[i])];
        const std::int64_t bytes = i == 0 ? buffer.bytes : plan_->graph.values[at(buffer.values[i])].type.bytes();
        PlanRect rect = rect_of(*plan_, buffer.values[i], i == 0 ? 0 : begin_of(p), nodes,
                                external_bytes_ + (i == 0 ? 0 : p.offset), bytes);
        if (bytes > 0) rects_.push_back(rect);
      }
      external_bytes_ += buffer.bytes;
    }
  }
  external_bytes_ = std::max(external_bytes_, plan_->external_bytes);
}

void PlanModel::lay_out_arena() {
  const Graph& graph = plan_->graph;
  const NodeId nodes = graph.node_count();
  std::vector<NodeId> ends(plan_->values.size(), 0);
  std::vector<bool> saved(plan_->values.size(), false);
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    // The bytes of a value live as long as its views.
    const ValueId root = root_of(*plan_, v);
    ends[at(root)] = std::max(ends[at(root)], end_of(plan_->values[at(v)], nodes));
    if (role_of(*plan_, v) == RoleClass::saved) saved[at(root)] = true;
  }
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    // An in-place result owns the bytes from its birth on.
    const Placement& p = plan_->values[at(v)];
    if (p.reason != Reason::in_place || p.other == kNone) continue;
    const ValueId operand = root_of(*plan_, p.other);
    ends[at(operand)] = std::min(ends[at(operand)], begin_of(p));
  }
  std::vector<PlanRect> arena;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Placement& p = plan_->values[at(v)];
    const std::int64_t bytes = graph.values[at(v)].type.bytes();
    if (p.where != Where::arena || lies_in_another(p) || bytes == 0 || ends[at(v)] <= begin_of(p)) continue;
    arena.push_back(rect_of(*plan_, v, begin_of(p), ends[at(v)], p.offset, bytes));
    if (saved[at(v)] && arena.back().role == RoleClass::temporary) arena.back().role = RoleClass::saved;
  }
  for (NodeId n = 0; n < nodes && at(n) < plan_->workspace.size(); ++n) {
    const Scratch& scratch = plan_->workspace[at(n)];
    if (scratch.bytes > 0) arena.push_back({kNone, n, n, n + 1, scratch.offset, scratch.bytes, RoleClass::workspace});
  }
  std::sort(arena.begin(), arena.end(),
            [](const PlanRect& a, const PlanRect& b) { return std::pair(a.begin, a.address) < std::pair(b.begin, b.address); });
  for (PlanRect& rect : arena) {
    rect.address += external_bytes_;
    rects_.push_back(rect);
  }
}

void PlanModel::sum_roles() {
  for (const PlanRect& rect : rects_) present_[at(static_cast<int>(rect.role))] = true;
  std::vector<std::vector<std::int64_t>> curves =
      curves_by([&](std::size_t rect) { return at(static_cast<int>(rects_[rect].role)); }, kRoleClassCount);
  std::move(curves.begin(), curves.end(), role_curves_.begin());
}

std::vector<std::vector<std::int64_t>> PlanModel::curves_by(const std::function<std::size_t(std::size_t)>& layer_of,
                                                            std::size_t layers) const {
  const std::size_t n = curve_.size();
  std::vector<std::vector<std::int64_t>> curves(layers, std::vector<std::int64_t>(n + 1, 0));
  std::int64_t drawn_to = 0;  // external buffers are stacked, so the bytes below this address are already counted
  for (std::size_t i = 0; i < rects_.size(); ++i) {
    const PlanRect& rect = rects_[i];
    std::vector<std::int64_t>& curve = curves[layer_of(i)];
    if (rect.address < external_bytes_) {
      if (rect.address < drawn_to || n == 0) continue;
      drawn_to = rect.address + rect.bytes;
      curve[0] += rect.bytes;
      continue;
    }
    if (at(rect.end) > n) continue;
    curve[at(rect.begin)] += rect.bytes;
    curve[at(rect.end)] -= rect.bytes;
  }
  for (auto& curve : curves) {
    for (std::size_t i = 1; i < curve.size(); ++i) curve[i] += curve[i - 1];
    curve.resize(n);
  }
  return curves;
}

std::vector<PlanRect> PlanModel::rects_of(ValueId v) const {
  std::vector<PlanRect> found;
  if (v < 0 || at(v) >= first_rect_.size()) return found;
  for (std::int32_t i = first_rect_[at(root_of(*plan_, v))]; i != kNone; i = next_rect_[at(i)]) found.push_back(rects_[at(i)]);
  return found;
}

const std::vector<PlanRect>& PlanModel::alive_at_peak() const {
  std::call_once(later_->alive_once, [&] {
    if (peak_node_ != kNone) later_->alive_at_peak = alive(peak_node_);
  });
  return later_->alive_at_peak;
}

std::vector<PlanRect> PlanModel::alive(NodeId n, std::size_t most) const {
  std::vector<std::int32_t> found;
  std::int64_t drawn_to = 0;
  for (std::size_t i = 0; i < rects_.size(); ++i) {
    const PlanRect& rect = rects_[i];
    if (n < rect.begin || n >= rect.end) continue;
    if (rect.address < external_bytes_) {
      if (rect.address < drawn_to) {
        // A later user of a whole buffer takes the place of the first.
        if (!found.empty() && rects_[at(found.back())].address == rect.address && rects_[at(found.back())].bytes == rect.bytes)
          found.back() = static_cast<std::int32_t>(i);
        continue;
      }
      drawn_to = rect.address + rect.bytes;
    }
    found.push_back(static_cast<std::int32_t>(i));
  }
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
  std::partial_sort(found.begin(), end, found.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(-rects_[at(a)].bytes, a) < std::pair(-rects_[at(b)].bytes, b);
  });
  std::vector<PlanRect> largest;
  for (auto i = found.begin(); i != end; ++i) largest.push_back(rects_[at(*i)]);
  return largest;
}

PlanView PlanModel::home() const {
  const double top = static_cast<double>(std::max<std::int64_t>({extent(), plan_->keep_all_peak_bytes, 1}));
  return {{0, static_cast<double>(std::max(nodes(), 1))}, {0, top * 1.06}};
}

PlanView PlanModel::around(ValueId v) const {
  const std::vector<PlanRect> rects = rects_of(v);
  if (rects.empty()) return home();
  double t0 = 1e300, t1 = 0, a0 = 1e300, a1 = 0;
  for (const PlanRect& r : rects) {
    t0 = std::min(t0, static_cast<double>(r.begin));
    t1 = std::max(t1, static_cast<double>(r.end));
    a0 = std::min(a0, static_cast<double>(r.address));
    a1 = std::max(a1, static_cast<double>(r.address + r.bytes));
  }
  const double time_air = std::max(1.0, (t1 - t0) * 0.25), byte_air = (a1 - a0) * 0.75;
  return {{t0 - time_air, t1 + time_air}, {a0 - byte_air, a1 + byte_air}};
}

}  // namespace tapedeck::viewer
