// Lays a graph out in three steps: the home of each value, the lifetimes of roots with the takeovers in place, and the offsets
// of buffers by place().
//
//     %a = exp(%x)          root %a, nodes 0..1     --+
//     %t = transpose(%a)    window on %a              +-- one buffer, nodes 0..2: %b takes over the bytes of %a
//     %b = neg(%a)          root %b, nodes 1..2     --+
//
// Clones have values of their own, and take their homes and windows from the values that they repeat.
#include <tapedeck/capture/planner/layout/layout.h>

#include <tapedeck/capture/analysis/takeovers.h>
#include <tapedeck/capture/planner/place/place.h>
#include <tapedeck/kernels/workspace_alignment.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace tapedeck {

namespace {

class LayoutMaker {
 public:
  LayoutMaker(const Facts& facts, const ClonedGraph& cloned, const SegmentTimes* times = nullptr)
      : facts_(facts),
        times_(times),
        graph_(cloned.graph),
        source_(cloned.source),
        original_(facts.graph->values.size(), kNone),
        last_(graph_.values.size(), kNone),
        holder_(graph_.values.size(), kNone) {
    layout_.values.resize(graph_.values.size());
    layout_.workspace.resize(graph_.nodes.size());
    layout_.root.resize(graph_.values.size());
  }

  Layout make(const Placing& placing) {
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (graph_.values[v].node == kNone || !graph_.nodes[graph_.values[v].node].origin.clone) original_[source_of(v)] = v;
    for (ValueId v = 0; v < graph_.value_count(); ++v) find_home(v);
    find_lifetimes();
    if (times_) find_users();
    for (NodeId n = 0; n < graph_.node_count(); ++n) take_over(n);
    place_buffers(placing);
    return std::move(layout_);
  }

 private:
  ValueId source_of(ValueId v) const {
    const NodeId n = graph_.values[v].node;
    if (n == kNone) return v;
    return facts_.graph->nodes[source_[n]].first_output + (v - graph_.nodes[n].first_output);
  }

  void find_home(ValueId v) {
    Placement& p = layout_.values[v];
    const ValueId source = source_of(v);
    const Window& window = facts_.windows[source];
    const NodeId n = graph_.values[v].node;
    layout_.root[v] = v;
    if (n != kNone && window.joined != kNone) return find_place(v, window);
    if (n != kNone && window.viewed != source) {
      const ValueId operand = graph_.inputs(graph_.nodes[n])[0];
      const Placement& base = layout_.values[operand];
      layout_.root[v] = layout_.root[operand];
      p.where = base.where;
      p.slot = base.slot;
      p.reason = Reason::alias;
      p.other = operand;
      p.offset = window.offset;
      p.dense = window.dense;
      std::copy_n(window.strides, kMaxRank, p.strides);
      return;
    }
    const bool clone = n != kNone && graph_.nodes[n].origin.clone;
    const Home home = clone ? Home{} : facts_.homes[source];
    p.where = home.where;
    p.slot = home.slot;
    dense_strides(graph_.values[v].type.shape, p.strides);
  }

  // A part, whose node is never made again, and neither is what joins it.
  void find_place(ValueId v, const Window& window) {
    Placement& p = layout_.values[v];
    const Home home = facts_.homes[window.root];
    layout_.root[v] = original_[window.root];
    p.where = home.where;
    p.slot = home.slot;
    p.reason = Reason::part;
    p.other = original_[window.joined];
    p.offset = window.offset;
    p.dense = window.dense;
    std::copy_n(window.strides, kMaxRank, p.strides);
  }

  void find_lifetimes() {
    const NodeId end = graph_.node_count();
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      Placement& p = layout_.values[v];
      const bool from_start = p.where == Where::constant && p.reason != Reason::alias;
      p.birth = from_start ? kNone : graph_.values[v].node;
      p.death = p.birth;
      last_[layout_.root[v]] = std::max(last_[layout_.root[v]], p.birth);
    }
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      Placement& whole = layout_.values[layout_.root[v]];
      if (layout_.values[v].reason == Reason::part) whole.birth = std::min(whole.birth, layout_.values[v].birth);
    }
    for (NodeId n = 0; n < end; ++n) {
      for (ValueId v : graph_.inputs(graph_.nodes[n])) {
        layout_.values[v].reader = layout_.values[v].death = n;
        last_[layout_.root[v]] = n;
      }
    }
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      Placement& p = layout_.values[v];
      if (layout_.root[v] != v || p.where == Where::arena) continue;
      const bool overwritten = p.where == Where::state && graph_.is_state(v) && facts_.overwritten[v] != Facts::kNever;
      if (!overwritten) p.death = end;
    }
  }

  // A takeover in this graph, in which clones have values of their own.
  struct ClonedPair {
    ValueId from = kNone;     // root of the operand
    ValueId to = kNone;       // the output
    ValueId operand = kNone;  // the operand itself
  };

  std::vector<ClonedPair> takeovers_of(NodeId n) const {
    std::vector<ClonedPair> pairs;
    const Node& node = graph_.nodes[n];
    const Node& source = facts_.graph->nodes[source_[n]];
    const auto operands = graph_.inputs(node);
    const auto originals = facts_.graph->inputs(source);
    for (const RootPair& pair : facts_.takeovers(source_[n])) {
      const auto at =
          std::find_if(originals.begin(), originals.end(), [&](ValueId v) { return facts_.windows[v].root == pair.from; });
      if (at == originals.end()) continue;
      const ValueId operand = operands[static_cast<std::size_t>(at - originals.begin())];
      pairs.push_back({layout_.root[operand], node.first_output + (pair.to - source.first_output), operand});
    }
    return pairs;
  }

  // Lets outputs of node n have the bytes of operands that die here.
  void take_over(NodeId n) {
    const std::vector<ClonedPair> pairs = takeovers_of(n);
    const auto dies_here = [&](ValueId root) { return last_[root] == n && (!times_ || done_before(root, n)); };
    take_over_in_place(std::span<const ClonedPair>(pairs), dies_here, [&](const ClonedPair& pair) {
      holder_[pair.to] = holder_of(pair.from);
      layout_.values[pair.to].reason = Reason::in_place;
      layout_.values[pair.to].other = pair.operand;
    });
  }

  // By root: the nodes that make or read its bytes, windows included.
  void find_users() {
    users_.resize(graph_.values.size());
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (graph_.values[v].node != kNone) users_[layout_.root[v]].push_back(graph_.values[v].node);
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      for (ValueId v : graph_.inputs(graph_.nodes[n])) users_[layout_.root[v]].push_back(n);
  }

  // Do all users of `root` but n itself run before n on several threads, too, without n's segment waiting for them?
  bool done_before(ValueId root, NodeId n) const {
    const std::int32_t mine = times_->segment_of[n];
    return std::all_of(users_[root].begin(), users_[root].end(), [&](NodeId user) {
      const std::int32_t s = times_->segment_of[user];
      return s == mine || times_->ended[s] < times_->began[mine];
    });
  }

  void note_use(NodeId user, Occupation* when) const {
    const std::int32_t s = times_->segment_of[user], ended = times_->ended[s];
    if (when->segment == kNone) {
      when->segment = s;
      when->began = times_->began[s];
    }
    if (s == when->last_segment) return;
    if (ended > when->ended) {
      when->others_ended = when->ended;
      when->ended = ended;
      when->last_segment = s;
    } else {
      when->others_ended = std::max(when->others_ended, ended);
    }
  }

  // One of several writers: none of them may begin too early, and no segment is that of all.
  void note_writer(NodeId writer, Occupation* when) const {
    const std::int32_t s = times_->segment_of[writer];
    if (s != when->segment) when->segment = kSeveral;
    when->began = std::min(when->began, times_->began[s]);
  }

  ValueId holder_of(ValueId root) const { return holder_[root] == kNone ? root : holder_[root]; }

  void place_buffers(const Placing& placing) {
    const std::int64_t alignment = placing.alignment;
    std::vector<Tenant> buffers;
    std::vector<std::int32_t> buffer_of(graph_.values.size(), kNone);  // by holder
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      if (layout_.values[v].where != Where::arena || layout_.root[v] != v) continue;
      const Type& type = graph_.values[v].type;
      const std::int64_t align = std::max<std::int64_t>(alignment, static_cast<std::int64_t>(dtype_size(type.dtype)));
      if (holder_[v] == kNone) {
        buffer_of[v] = static_cast<std::int32_t>(buffers.size());
        buffers.push_back({type.bytes(), align, layout_.values[v].birth, last_[v]});
      } else {
        Tenant& held = buffers[buffer_of[holder_[v]]];
        held.alignment = std::max(held.alignment, align);
        held.death = std::max(held.death, last_[v]);
      }
    }
    const std::size_t first_scratch = buffers.size();
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      buffers.push_back({facts_.workspace[source_[n]], std::max<std::int64_t>(alignment, kWorkspaceAlignment), n, n});

    if (placing.near && placing.chunk_bytes == 0) give_hints(*placing.near, buffer_of, first_scratch, &buffers);
    PlaceOptions how;
    how.work = placing.work;
    if (placing.start) how.start = offsets_in(*placing.start, buffer_of, buffers.size());
    how.cancel = placing.cancel;
    how.chunk_bytes = placing.chunk_bytes;
    how.slack = placing.slack;
    how.first_fit_only = placing.first_fit_only;
    how.retries = placing.retries;
    how.threads = 0;  // those of the planner's caller
    Offsets placed =
        times_ ? place_apart(buffers, find_occupations(buffer_of, buffers.size()), placing.chunk_bytes) : place(buffers, how);
    layout_.arena_bytes = placed.end;
    layout_.near = placed.at_hints;
    if (placed.end < 0) return;
    if (!placed.arena.empty()) join_chunks(buffers, &placed);
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      Placement& p = layout_.values[v];
      if (p.where == Where::arena) p.offset += placed.offsets[buffer_of[holder_of(layout_.root[v])]];
    }
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      layout_.workspace[n] = {placed.offsets[first_scratch + n], buffers[first_scratch + n].bytes};
  }

  // From offsets within each chunk to one range with the chunks end to end, the largest first: members of a pool, block by
  // block, then have the least to hold in sum.
  void join_chunks(const std::vector<Tenant>& buffers, Offsets* placed) {
    std::vector<std::int64_t> held;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const auto chunk = static_cast<std::size_t>(placed->arena[i]);
      if (held.size() <= chunk) held.resize(chunk + 1, 0);
      if (buffers[i].bytes > 0) held[chunk] = std::max(held[chunk], placed->offsets[i] + buffers[i].bytes);
    }
    std::vector<std::size_t> order(held.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return held[a] > held[b]; });
    std::vector<std::int64_t> start(held.size(), 0);
    std::int64_t end = 0;
    for (std::size_t chunk : order) {
      start[chunk] = end;
      end += held[chunk];
      if (held[chunk] > 0) layout_.chunks.push_back(held[chunk]);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].bytes > 0) placed->offsets[i] += start[placed->arena[i]];
  }

  // By buffer.
  std::vector<std::int64_t> offsets_in(const Layout& known, const std::vector<std::int32_t>& buffer_of,
                                       std::size_t n_buffers) const {
    std::vector<std::int64_t> offsets(n_buffers);
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (buffer_of[v] != kNone) offsets[buffer_of[v]] = known.values[v].offset;
    const std::size_t first_scratch = n_buffers - graph_.nodes.size();
    for (NodeId n = 0; n < graph_.node_count(); ++n) offsets[first_scratch + n] = known.workspace[n].offset;
    return offsets;
  }

  // Buffers and workspaces by the names of values; what has another size by now gets no hint.
  void give_hints(const Plan& near, const std::vector<std::int32_t>& buffer_of, std::size_t first_scratch,
                  std::vector<Tenant>* buffers) const {
    const std::vector<Named> named = values_by_name(near.graph);
    const auto there = [&](ValueId v) {
      const std::string name = graph_.value_name(v);
      const auto at =
          std::lower_bound(named.begin(), named.end(), name, [](const Named& a, const std::string& b) { return a.first < b; });
      return at != named.end() && at->first == name ? at->second : kNone;
    };
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      if (buffer_of[v] == kNone) continue;
      const ValueId old = there(v);
      if (old == kNone || near.values[old].where != Where::arena ||
          near.graph.values[old].type.bytes() != graph_.values[v].type.bytes())
        continue;
      (*buffers)[buffer_of[v]].hint = near.values[old].offset;
    }
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      Tenant& scratch = (*buffers)[first_scratch + n];
      if (scratch.bytes == 0 || graph_.nodes[n].n_outputs == 0) continue;
      const ValueId old = there(graph_.nodes[n].first_output);
      const NodeId maker = old == kNone ? kNone : near.graph.values[old].node;
      if (maker != kNone && near.workspace[maker].bytes == scratch.bytes) scratch.hint = near.workspace[maker].offset;
    }
  }

  using Named = std::pair<std::string, ValueId>;
  static std::vector<Named> values_by_name(const Graph& graph) {
    std::vector<Named> values;
    for (ValueId v = 0; v < graph.value_count(); ++v) values.emplace_back(graph.value_name(v), v);
    std::sort(values.begin(), values.end());
    return values;
  }

  // Of the buffers of values, in the order of values, then of the nodes' workspaces.
  std::vector<Occupation> find_occupations(const std::vector<std::int32_t>& buffer_of, std::size_t n_buffers) const {
    std::vector<Occupation> when(n_buffers);
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      if (layout_.values[v].where != Where::arena || layout_.root[v] != v) continue;
      for (NodeId user : users_[v]) note_use(user, &when[buffer_of[holder_of(v)]]);  // the maker first
    }
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      const Placement& p = layout_.values[v];
      if (p.where == Where::arena && p.reason == Reason::part) note_writer(p.birth, &when[buffer_of[layout_.root[v]]]);
    }
    const std::size_t first_scratch = n_buffers - graph_.nodes.size();
    for (NodeId n = 0; n < graph_.node_count(); ++n) note_use(n, &when[first_scratch + n]);
    return when;
  }

  static constexpr std::int32_t kSeveral = -2;

  const Facts& facts_;
  const SegmentTimes* times_;  // null: for one thread
  const Graph& graph_;
  const std::vector<NodeId>& source_;
  std::vector<ValueId> original_;           // by value of the graph without clones: the first copy
  std::vector<NodeId> last_;                // by root: the last node that needs its bytes, windows counted, heirs not
  std::vector<ValueId> holder_;             // by root: the first of the chain whose bytes it took over, or kNone
  std::vector<std::vector<NodeId>> users_;  // by root, with times_ only
  Layout layout_;
};

}  // namespace

Layout lay_out(const Facts& facts, const ClonedGraph& cloned, const Placing& placing) {
  return LayoutMaker(facts, cloned).make(placing);
}

Layout lay_out_apart(const Facts& facts, const ClonedGraph& cloned, const Placing& placing, const SegmentTimes& times) {
  return LayoutMaker(facts, cloned, &times).make({.alignment = placing.alignment, .chunk_bytes = placing.chunk_bytes});
}

}  // namespace tapedeck
