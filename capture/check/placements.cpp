// Invariants (2) and (3) of a plan, value by value: each value lies in the buffer where it belongs; windows, parts and
// takeovers are those that the ops allow; each node has the workspace that it needs.
#include <tapedeck/capture/check/checks.h>
#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/kernels/workspace_alignment.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

class PlacementChecker {
 public:
  PlacementChecker(const Plan& plan, Violations* out)
      : plan_(plan), g_(plan.graph), out_(out), owner_(bytes_owner(plan)), chunks_(plan), state_made_(g_.values.size(), kNone) {
    for (const Update& u : g_.updates)
      if (state_made_[u.value] == kNone) state_made_[u.value] = u.state - g_.n_inputs;
  }

  void check() {
    for (ValueId v = 0; v < g_.value_count() && more(); ++v) {
      const Reason reason = plan_.values[v].reason;
      if (reason != Reason::alias && reason != Reason::part) check_own_bytes(v);
      if (reason == Reason::in_place) check_takeover(v);
    }
    for (ValueId v = g_.value_count();
         v-- > 0 && out_->empty();)  // the whole before its parts, because the strides of the parts come from it
      if (plan_.values[v].reason == Reason::part) check_part(v);
    for (ValueId v = 0; v < g_.value_count() && more(); ++v)
      if (plan_.values[v].reason == Reason::alias) check_window(v);
    for (NodeId n = 0; n < g_.node_count() && more(); ++n) {
      check_workspace(n);
      check_strides_taken(n);
    }
    for (NodeId n = 0; n < g_.node_count() && out_->empty(); ++n) check_parts_apart(n);
    check_outputs();
    check_updates();
    if (plan_.chunk_bytes > 0) check_cap();
  }

 private:
  bool more() const { return out_->size() < kMostViolations; }
  const Type& type(ValueId v) const { return g_.values[v].type; }
  std::int64_t in_chunk(std::int64_t offset) const { return offset - chunks_.start(chunks_.of(offset)); }

  template <class... Args>
  void report(ValueId v, fmt::format_string<Args...> text, Args&&... args) {
    out_->push_back("%" + g_.value_name(v) + " " + fmt::format(text, std::forward<Args>(args)...));
  }

  // ---- a value with bytes of its own ----

  void check_own_bytes(ValueId v) {
    const Placement& p = plan_.values[v];
    if (!p.dense) report(v, "has bytes of its own, so it must be dense");
    if (p.where == Where::arena)
      check_arena(v);
    else if (p.offset != 0)
      report(v, "does not start where its buffer starts");
    if (wanted_buffer(v) != std::pair(p.where, p.slot)) report(v, "is in the wrong buffer");
    if (p.where == Where::output && plan_.output_slots[p.slot] != type(v)) report(v, "and its output slot differ in type");
    if (p.where == Where::constant && g_.constants[p.slot].type != type(v)) report(v, "and its constant differ in type");
  }

  // Inputs, state and constants have one place each. A value that a node makes may lie in the arena, in an output slot, or in
  // the state that it updates.
  std::pair<Where, std::int32_t> wanted_buffer(ValueId v) const {
    const Placement& p = plan_.values[v];
    if (g_.is_input(v)) return {Where::input, v};
    if (g_.is_state(v)) return {Where::state, v - g_.n_inputs};
    if (const Literal* literal = g_.literal(g_.nodes[g_.values[v].node]))
      return {Where::constant, static_cast<std::int32_t>(literal - g_.constants.data())};
    if (p.where == Where::output) return {Where::output, p.slot};
    if (p.where != Where::state || state_made_[v] == kNone) return {Where::arena, kNone};
    return {Where::state, state_made_[v]};
  }

  void check_arena(ValueId v) {
    const Placement& p = plan_.values[v];
    const std::int64_t bytes = type(v).bytes();
    const std::int64_t alignment =
        std::max<std::int64_t>(plan_.alignment, static_cast<std::int64_t>(dtype_size(type(v).dtype)));
    if (p.offset < 0 || p.offset > plan_.arena_bytes || bytes > plan_.arena_bytes - p.offset)
      report(v, "is not inside the arena");
    else if (!chunks_.in_one(p.offset, bytes))
      report(v, "lies across a joint of two chunks");
    else if (in_chunk(p.offset) % alignment != 0)
      report(v, "lies at {}{}, which is no multiple of {}", in_chunk(p.offset), chunks_.count() > 1 ? " of its chunk" : "",
             alignment);
  }

  // ---- windows ----

  void check_window(ValueId v) {
    const Placement& p = plan_.values[v];
    const Placement& base = plan_.values[p.other];
    const NodeId n = g_.values[v].node;
    if (n == kNone || !g_.nodes[n].op->is(kView) || !g_.nodes[n].op->view || g_.nodes[n].n_inputs != 1 ||
        g_.inputs(g_.nodes[n])[0] != p.other)
      return report(v, "is a window on a value that it is no view of");
    if (p.where != base.where || p.slot != base.slot) return report(v, "is a window on a value in another buffer");
    if (type(v).numel() == 0 || !out_->empty()) return;  // the code below uses the strides of the base, so they must be right

    std::int64_t offset = 0, strides[kMaxRank] = {}, base_strides[kMaxRank] = {}, own_strides[kMaxRank] = {};
    strides_of(p.other, base_strides);
    strides_of(v, own_strides);
    if (!g_.nodes[n].op->view(type(p.other), base_strides, g_.attributes(g_.nodes[n]), type(v), &offset, strides))
      return report(v, "is a window that strides cannot express");
    bool same = p.offset == base.offset + offset * static_cast<std::int64_t>(dtype_size(type(v).dtype));
    for (int i = 0; i < type(v).shape.rank; ++i) same = same && (type(v).shape[i] == 1 || strides[i] == own_strides[i]);
    if (!same) return report(v, "is a window in the wrong place");
    check_window_inside(v, own_strides);
  }

  // ---- parts ----

  // A part lies where the value that joins it has a place for it, in strides that its maker writes.
  void check_part(ValueId v) {
    const Placement& p = plan_.values[v];
    const Placement& whole = plan_.values[p.other];
    const NodeId n = g_.values[v].node, joiner = g_.values[p.other].node;
    if (n == kNone || g_.literal(g_.nodes[n]) || g_.nodes[n].origin.clone)
      return report(v, "is a part, and no node that runs once makes it");
    if (p.where != whole.where || p.slot != whole.slot || (p.where != Where::arena && p.where != Where::output))
      return report(v, "is a part of a value in another buffer");
    if (joiner <= n || !g_.nodes[joiner].op->part) return report(v, "is a part of what joins nothing");
    if (type(v).numel() == 0) return;  // a value without elements cannot be in the wrong place
    const Node& maker = g_.nodes[n];
    if (!p.dense && !maker.op->is(kElementwise) && !maker.op->part &&
        !(declared(maker.op->batch_strides.outputs, v - maker.first_output) && whole_images(v) && images_apart(v)))
      return report(v, "has strides that its maker does not write");
    if (joined_at(v) == kNone) return report(v, "is a part in the wrong place");
    std::int64_t strides[kMaxRank] = {};
    strides_of(v, strides);
    check_window_inside(v, strides);
  }

  // A node that joins, prepared for the questions about its parts.
  struct Joiner {
    std::vector<Type> types;                  // of its operands
    std::vector<std::int64_t> offsets;        // by operand: its place in the result, in elements
    std::vector<std::int64_t> dense_offsets;  // the same, if the result were dense
    std::vector<std::pair<ValueId, std::int32_t>>
        shown;  // a value, and the operand that is this value or a window on it; ascending
  };

  const Joiner& joiner_at(NodeId n) {
    const auto [it, fresh] = joiners_.try_emplace(n);
    Joiner& joiner = it->second;
    if (!fresh) return joiner;
    const Node& node = g_.nodes[n];
    joiner.types = g_.input_types(node);
    joiner.offsets.resize(joiner.types.size());
    joiner.dense_offsets.resize(joiner.types.size());
    std::int64_t strides[kMaxRank] = {};
    strides_of(node.first_output, strides);
    node.op->part(joiner.types, g_.attributes(node), strides, joiner.offsets.data());
    dense_strides(type(node.first_output).shape, strides);
    node.op->part(joiner.types, g_.attributes(node), strides, joiner.dense_offsets.data());
    const auto operands = g_.inputs(node);
    for (std::int32_t i = 0; i < g_.nodes[n].n_inputs; ++i) joiner.shown.emplace_back(shown_by(operands[i]), i);
    std::sort(joiner.shown.begin(), joiner.shown.end());
    return joiner;
  }

  ValueId shown_by(ValueId v) const {
    while (plan_.values[v].reason == Reason::alias) v = plan_.values[v].other;
    return v;
  }

  // The operand of the joining node that shows the whole part in the place of that operand; kNone if there is none.
  std::int32_t joined_at(ValueId v) {
    const NodeId n = g_.values[plan_.values[v].other].node;
    const Node& node = g_.nodes[n];
    const Joiner& joiner = joiner_at(n);
    std::int64_t whole[kMaxRank] = {}, own[kMaxRank] = {};
    strides_of(node.first_output, whole);
    const std::int64_t item = static_cast<std::int64_t>(dtype_size(type(v).dtype));
    for (auto at = std::lower_bound(joiner.shown.begin(), joiner.shown.end(), std::pair(v, 0));
         at != joiner.shown.end() && at->first == v; ++at) {
      const std::int32_t i = at->second;
      const ValueId operand = g_.inputs(node)[i];
      if (type(operand).bytes() != type(v).bytes()) continue;
      strides_of(operand, own);
      bool same = plan_.values[operand].offset == plan_.values[node.first_output].offset + joiner.offsets[i] * item;
      for (int d = 0; d < type(operand).shape.rank; ++d) same = same && (type(operand).shape[d] == 1 || own[d] == whole[d]);
      if (same && plan_.values[operand].offset == plan_.values[v].offset) return i;
    }
    return kNone;
  }

  // No two parts that node n joins have an element in common: as boxes in the result they are apart in some dimension.
  void check_parts_apart(NodeId n) {
    const Node& node = g_.nodes[n];
    if (node.n_outputs != 1 || !node.op->part) return;
    std::vector<std::int32_t> placed;
    for (ValueId operand : g_.inputs(node)) {
      const ValueId v = shown_by(operand);
      const bool here = plan_.values[v].reason == Reason::part && plan_.values[v].other == node.first_output;
      if (here && type(v).numel() > 0) placed.push_back(joined_at(v));
    }
    std::sort(placed.begin(), placed.end());
    placed.erase(std::unique(placed.begin(), placed.end()), placed.end());
    std::vector<Box> boxes;
    for (std::int32_t i : placed) boxes.push_back(box_of(n, i));
    if (any_meet(std::move(boxes))) report(node.first_output, "joins parts that lie in each other");
  }

  struct Box {
    std::array<std::int64_t, kMaxRank> first = {}, end = {};
    int rank = 0;
  };

  // The dimension in which the boxes begin at the most places: the dimension in which they are joined.
  static int widest_dimension(const std::vector<Box>& boxes) {
    int widest = 0;
    std::size_t most = 0;
    for (int d = 0; d < boxes[0].rank; ++d) {
      std::vector<std::int64_t> places;
      for (const Box& box : boxes) places.push_back(box.first[d]);
      std::sort(places.begin(), places.end());
      const auto count = static_cast<std::size_t>(std::unique(places.begin(), places.end()) - places.begin());
      if (count > most) most = count, widest = d;
    }
    return widest;
  }

  // A sweep along that dimension: a box can meet only boxes that have not ended.
  static bool any_meet(std::vector<Box> boxes) {
    if (boxes.size() < 2) return false;
    const auto d = static_cast<std::size_t>(widest_dimension(boxes));
    std::sort(boxes.begin(), boxes.end(), [d](const Box& a, const Box& b) { return a.first[d] < b.first[d]; });
    std::vector<const Box*> open;
    for (const Box& box : boxes) {
      std::erase_if(open, [&](const Box* o) { return o->end[d] <= box.first[d]; });
      if (std::any_of(open.begin(), open.end(), [&](const Box* o) { return meet(*o, box); })) return true;
      open.push_back(&box);
    }
    return false;
  }

  // Where an operand of node n lies among the elements of a dense result. REQUIRES: the operand has elements.
  Box box_of(NodeId n, std::int32_t input) {
    const Joiner& joiner = joiner_at(n);
    const Shape& whole = type(g_.nodes[n].first_output).shape;
    std::int64_t strides[kMaxRank] = {}, offset = joiner.dense_offsets[input];
    dense_strides(whole, strides);
    Box box;
    box.rank = whole.rank;
    for (int d = 0; d < whole.rank; ++d) {
      box.first[d] = offset / std::max<std::int64_t>(strides[d], 1);
      offset -= box.first[d] * strides[d];
      box.end[d] = box.first[d] + joiner.types[input].shape[d];
    }
    return box;
  }

  static bool meet(const Box& a, const Box& b) {
    for (int d = 0; d < a.rank; ++d)
      if (a.end[d] <= b.first[d] || b.end[d] <= a.first[d]) return false;
    return true;
  }

  void strides_of(ValueId v, std::int64_t* strides) const {
    if (plan_.values[v].dense)
      dense_strides(type(v).shape, strides);
    else
      std::copy_n(plan_.values[v].strides, kMaxRank, strides);
  }

  // The first and last element touched lie inside the bytes of the owner.
  void check_window_inside(ValueId v, const std::int64_t* strides) {
    const Placement& p = plan_.values[v];
    const Shape& shape = type(v).shape;
    const auto element = static_cast<__int128>(dtype_size(type(v).dtype));
    __int128 first = p.offset, last = p.offset;
    for (int i = 0; i < shape.rank; ++i) {
      const __int128 reach = static_cast<__int128>(strides[i]) * (shape[i] - 1) * element;
      (reach < 0 ? first : last) += reach;
    }
    const std::int64_t start = plan_.values[owner_[v]].offset, end = start + type(owner_[v]).bytes();
    if (first < start || last + element > end) report(v, "reaches beyond the bytes it is a window on");
  }

  void check_strides_taken(NodeId n) {
    const Op& op = *g_.nodes[n].op;
    if (op.is(kAnyStrides) || op.is(kElementwise) || op.is(kView)) return;
    const auto operands = g_.inputs(g_.nodes[n]);
    for (int i = 0; i < g_.nodes[n].n_inputs; ++i) {
      const ValueId v = operands[i];
      const bool taken = (op.is(kMatrixStrides) && is_matrix(v)) || (declared(op.batch_strides.inputs, i) && whole_images(v));
      if (!plan_.values[v].dense && !taken) report(v, "has strides that `{}` does not take", g_.node_text(n));
    }
  }

  static bool declared(std::uint32_t bits, int i) { return i < 32 && ((bits >> i) & 1) != 0; }

  // Without gaps inside each element of the first dimension.
  bool whole_images(ValueId v) const {
    const Shape& s = type(v).shape;
    std::int64_t dense[kMaxRank] = {};
    dense_strides(s, dense);
    for (int d = 1; d < s.rank; ++d)
      if (s[d] != 1 && plan_.values[v].strides[d] != dense[d]) return false;
    return true;
  }

  bool images_apart(ValueId v) const {
    const Shape& s = type(v).shape;
    return s.rank > 0 && (s[0] == 1 || plan_.values[v].strides[0] >= s.numel() / s[0]);
  }

  bool is_matrix(ValueId v) const {
    const Shape& s = type(v).shape;
    const std::int64_t* strides = plan_.values[v].strides;
    if (s.rank < 2) return false;
    for (const auto& [across, down] : {std::pair(s.rank - 1, s.rank - 2), std::pair(s.rank - 2, s.rank - 1)}) {
      const bool unit = s[across] == 1 || strides[across] == 1;
      if (unit && (s[down] == 1 || strides[down] >= s[across])) return true;
    }
    return false;
  }

  // ---- takeovers ----

  void check_takeover(ValueId v) {
    const Placement& p = plan_.values[v];
    const ValueId from = owner_[p.other];
    if (p.where != Where::arena || plan_.values[from].where != Where::arena)
      return report(v, "takes over bytes that are not in the arena");
    if (p.offset != plan_.values[from].offset || type(v).bytes() != type(from).bytes() ||
        plan_.values[p.other].offset != p.offset)
      return report(v, "takes over bytes that are not exactly its own");
    if (!element_for_element(v, p.other))
      return report(v, "takes over the {} bytes of %{}, but shows only {} bytes, %{}, to its op, which reads them again",
                    type(from).bytes(), g_.value_name(from), type(p.other).bytes(), g_.value_name(p.other));
    if (!may_overwrite(v, p.other)) report(v, "takes over bytes that its op may not overwrite");
  }

  // Whether element k of v has the bytes of element k of `from`. An op that overwrites an operand reads each element before it
  // writes the element with the same number. A window on a part of the bytes is broadcast, so its elements are read again
  // later.
  bool element_for_element(ValueId v, ValueId from) const {
    return type(v).numel() == type(from).numel() && dtype_size(type(v).dtype) == dtype_size(type(from).dtype);
  }

  // Does v's op declare that v may overwrite its operand `from`, and is no other operand in the way?
  bool may_overwrite(ValueId v, ValueId from) const {
    if (g_.values[v].node == kNone || !plan_.values[from].dense) return false;
    const Node& node = g_.nodes[g_.values[v].node];
    const auto operands = g_.inputs(node);
    for (const InplacePair& pair : node.op->inplace) {
      if (pair.output != v - node.first_output || pair.input < 0 || pair.input >= node.n_inputs || operands[pair.input] != from)
        continue;
      bool free = true;
      for (int i = 0; i < node.n_inputs; ++i)
        if (i != pair.input && owner_[operands[i]] == owner_[from] && !(operands[i] == from && node.op->is(kElementwise)))
          free = false;
      if (free) return true;
    }
    return false;
  }

  // ---- workspace, outputs, updates ----

  void check_workspace(NodeId n) {
    const Scratch& s = plan_.workspace[n];
    std::int64_t wanted = 0;
    try {
      wanted = needed_workspace(plan_, n);
    } catch (const InvalidGraphError& e) {  // the loop tape would be larger than any memory
      return out_->push_back(e.what());
    }
    if (s.bytes < wanted) out_->push_back(fmt::format("`{}` has too little workspace", g_.node_text(n)));
    if (s.bytes < 0 || s.offset < 0 || s.offset > plan_.arena_bytes || s.bytes > plan_.arena_bytes - s.offset)
      out_->push_back(fmt::format("the workspace of `{}` is not inside the arena", g_.node_text(n)));
    else if (!chunks_.in_one(s.offset, s.bytes))
      out_->push_back(fmt::format("the workspace of `{}` lies across a joint of two chunks", g_.node_text(n)));
    else if (s.bytes > 0 && in_chunk(s.offset) % kWorkspaceAlignment != 0)
      out_->push_back(fmt::format("the workspace of `{}` is not aligned", g_.node_text(n)));
  }

  // A chunk is larger than the cap only if one buffer fills it.
  void check_cap() {
    std::vector<std::int64_t> largest(static_cast<std::size_t>(chunks_.count()), 0);
    const auto note = [&](std::int64_t offset, std::int64_t bytes) {
      std::int64_t& most = largest[chunks_.of(offset)];
      most = std::max(most, bytes);
    };
    for (ValueId v = 0; v < g_.value_count(); ++v)
      if (owner_[v] == v && plan_.values[v].where == Where::arena) note(plan_.values[v].offset, type(v).bytes());
    for (const Scratch& s : plan_.workspace) note(s.offset, s.bytes);
    for (std::int32_t c = 0; c < chunks_.count(); ++c)
      if (chunks_.bytes(c) > std::max(plan_.chunk_bytes, largest[c]) && more())
        out_->push_back(
            fmt::format("chunk {} has {} bytes, more than {} and than anything in it", c, chunks_.bytes(c), plan_.chunk_bytes));
  }

  void check_outputs() {
    std::vector<char> returned(g_.values.size(), 0), updated(g_.values.size(), 0);
    for (ValueId v : g_.outputs) returned[v] = 1;
    for (const Update& u : g_.updates) updated[u.state] = 1;
    std::vector<ValueId> in_slot(plan_.output_slots.size(), kNone);
    for (ValueId v = 0; v < g_.value_count() && more(); ++v) {
      const Placement& p = plan_.values[v];
      const bool own = p.reason != Reason::alias && p.reason != Reason::part;
      if (returned[v] && (!own || p.where == Where::arena)) report(v, "is returned, but its bytes do not last");
      if (returned[v] && p.where == Where::state && (!g_.is_state(v) || updated[v]))
        report(v, "is returned from a state buffer that is overwritten");
      if (p.where != Where::output || !own) continue;
      if (!returned[v]) report(v, "is in an output slot and not returned");
      if (in_slot[p.slot] != kNone) report(v, "shares an output slot with %{}", g_.value_name(in_slot[p.slot]));
      in_slot[p.slot] = v;
    }
  }

  void check_updates() {
    for (const Update& u : g_.updates) {
      if (!more()) return;
      const Placement& p = plan_.values[u.value];
      if (u.value == u.state) continue;
      if (p.where != Where::state || p.slot != u.state - g_.n_inputs || p.reason == Reason::alias ||
          g_.values[u.value].node == kNone) {
        report(u.value, "is not made in the state it updates");
        continue;
      }
      const auto operands = g_.inputs(g_.nodes[g_.values[u.value].node]);
      for (ValueId v : operands)
        if (owner_[v] == u.state && !(covers(v, u.state) && may_overwrite(u.value, v)))
          report(u.value, "overwrites the state that its own op reads");
    }
  }

  // Whether v has all bytes of the state. A window on some of them does not hold each element where the op writes it.
  bool covers(ValueId v, ValueId state) const {
    return plan_.values[v].offset == plan_.values[state].offset && element_for_element(v, state);
  }

  const Plan& plan_;
  const Graph& g_;
  Violations* out_;
  std::vector<ValueId> owner_;
  const ArenaChunks chunks_;
  std::vector<std::int32_t> state_made_;        // by value: the state that it updates, the first if there are several
  std::unordered_map<NodeId, Joiner> joiners_;  // filled when first asked for
};

}  // namespace

void check_placements(const Plan& plan, Violations* out) { PlacementChecker(plan, out).check(); }

}  // namespace tapedeck
