// Parts are placed from the last join back to the first, so that the place of a whole is known before the places of its parts.
//     %c = concat(%a, %b) {axis=1}    %e = concat(%c, %d) {axis=1}
//     %e is the whole; %c is a part of %e; %a and %b are parts of %c, and so they lie in the bytes of %e too
#include <tapedeck/capture/analysis/parts.h>

#include <algorithm>

namespace tapedeck {

namespace {

// The value whose bytes the operand shows, all of them and in their order; kNone if the operand shows only some.
ValueId whole_of(const Graph& graph, ValueId operand, const std::vector<Window>& windows) {
  const Window& w = windows[operand];
  const bool covers = w.dense && w.offset == 0 && graph.values[operand].type.bytes() == graph.values[w.viewed].type.bytes();
  return covers ? w.viewed : kNone;
}

// The strides of `to`, which has the elements of `from` in the same order, if `from` has the strides `given`. Dimensions of
// size 1 may come and go.
bool carry_strides(const Shape& from, const std::int64_t* given, const Shape& to, std::int64_t* strides) {
  if (is_dense(from, given)) {
    dense_strides(to, strides);
    return true;
  }
  int f = 0;
  for (int d = 0; d < to.rank; ++d) {
    while (f < from.rank && from[f] == 1) ++f;
    if (to[d] == 1) {
      strides[d] = 1;
      continue;
    }
    if (f == from.rank || from[f] != to[d]) return false;
    strides[d] = given[f++];
  }
  while (f < from.rank && from[f] == 1) ++f;
  return f == from.rank;
}

class PartFinder {
 public:
  explicit PartFinder(const JoinFacts& facts) : facts_(facts), graph_(facts.graph) {}

  std::vector<PartPlace> places() const {
    std::vector<PartPlace> places;
    std::vector<ValueId> listed_for(graph_.values.size(), kNone);  // by part: the last whole for which it is in the list
    for (const Node& node : graph_.nodes) {
      if (!joins(node)) continue;
      for (ValueId operand : graph_.inputs(node)) {
        const PartPlace place{whole_of(graph_, operand, facts_.windows), node.first_output};
        if (place.part == kNone || listed_for[place.part] == place.whole || !may_be_part(place.part)) continue;
        listed_for[place.part] = place.whole;
        places.push_back(place);
      }
    }
    return places;
  }

  // From the last join back, so that the place of the whole is known before the places of its parts.
  std::vector<Window> find(const PartChoice& choice) {
    parts_.assign(graph_.values.size(), {});
    for (NodeId n = graph_.node_count(); n-- > 0;)
      if (joins(graph_.nodes[n])) place_operands(n, choice);
    return std::move(parts_);
  }

 private:
  static bool settled(const Node& node) { return node.origin.clone || node.origin.region >= 0; }

  bool joins(const Node& node) const {
    return node.op->part && node.n_outputs == 1 && !settled(node) && facts_.rooms[node.first_output] != Room::elsewhere &&
           facts_.windows[node.first_output].root == node.first_output;
  }

  bool may_be_part(ValueId v) const {
    const NodeId maker = graph_.values[v].node;
    return maker != kNone && facts_.rooms[v] == Room::arena && graph_.values[v].type.bytes() > 0 &&
           !settled(graph_.nodes[maker]);
  }

  void place_operands(NodeId n, const PartChoice& choice) {
    const Node& node = graph_.nodes[n];
    const auto operands = graph_.inputs(node);
    const ValueId result = node.first_output;
    const Window whole = parts_[result].root != kNone ? parts_[result] : own_bytes_of(graph_, result);
    const std::vector<std::int64_t> offsets = part_offsets(graph_, node, whole.strides);
    for (int i = 0; i < node.n_inputs; ++i) {
      const ValueId v = whole_of(graph_, operands[i], facts_.windows);
      if (v == kNone || choice[v] != result || parts_[v].root != kNone || !may_be_part(v)) continue;
      Window place;
      if (place_part(graph_, node, i, offsets[i], whole, v, &place) && can_be_written(v, place) && readers_take(v, place))
        parts_[v] = place;
    }
  }

  struct Shown {
    ValueId value = kNone;
    Window place;
  };

  bool can_be_written(ValueId v, const Window& place) const {
    const Node& maker = graph_.nodes[graph_.values[v].node];
    return writes_strides(*maker.op, v - maker.first_output, graph_.values[v].type.shape, place.strides);
  }

  // Readers of v, and readers of the views of v that are windows now and stay windows. Views of views may be as many as the
  // nodes of the graph, so they wait in a list.
  bool readers_take(ValueId v, const Window& place) const {
    std::vector<Shown> waiting = {{v, place}};
    while (!waiting.empty()) {
      const Shown shown = waiting.back();
      waiting.pop_back();
      for (NodeId n : facts_.readers.of(shown.value)) {
        const Node& reader = graph_.nodes[n];
        if (!takes_strides(graph_, n, shown.value, shown.place.strides)) return false;
        const ValueId view = reader.first_output;
        if (reader.n_outputs != 1 || facts_.windows[view].viewed == view || graph_.inputs(reader)[0] != shown.value) continue;
        const Window w = view_window(graph_, reader, shown.place);
        if (w.root == kNone) return false;
        waiting.push_back({view, w});
      }
    }
    return true;
  }

  const JoinFacts& facts_;
  const Graph& graph_;
  std::vector<Window> parts_;
};

}  // namespace

std::vector<PartPlace> find_part_places(const JoinFacts& facts) { return PartFinder(facts).places(); }

PartChoice join_all(const JoinFacts& facts) {
  PartChoice choice(facts.graph.values.size(), kNone);
  for (const PartPlace& place : find_part_places(facts))
    if (choice[place.part] == kNone) choice[place.part] = place.whole;
  return choice;
}

PartChoice choice_of(const std::vector<Window>& windows) {
  PartChoice choice(windows.size(), kNone);
  for (ValueId v = 0; v < static_cast<ValueId>(windows.size()); ++v)
    if (windows[v].viewed == v) choice[v] = windows[v].joined;
  return choice;
}

std::vector<Window> find_parts(const JoinFacts& facts, const PartChoice& choice) { return PartFinder(facts).find(choice); }

std::vector<std::int64_t> part_offsets(const Graph& graph, const Node& joiner, const std::int64_t* strides) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(joiner.n_inputs));
  joiner.op->part(graph.input_types(joiner), graph.attributes(joiner), strides, offsets.data());
  return offsets;
}

bool place_part(const Graph& graph, const Node& joiner, int input, std::int64_t offset, const Window& whole, ValueId part,
                Window* place) {
  const Type& type = graph.values[graph.inputs(joiner)[input]].type;
  const Shape& shape = graph.values[part].type.shape;
  *place = whole;
  if (!carry_strides(type.shape, whole.strides, shape, place->strides)) return false;
  place->offset += offset * static_cast<std::int64_t>(dtype_size(type.dtype));
  place->dense = is_dense(shape, place->strides);
  if (place->dense) dense_strides(shape, place->strides);
  place->viewed = part;
  place->joined = joiner.first_output;
  return true;
}

std::int64_t joined_already(const Graph& graph, const Node& node, const std::function<Window(ValueId)>& window_of) {
  if (!node.op->part || node.n_outputs != 1) return 0;
  const Window whole = window_of(node.first_output);
  const std::vector<std::int64_t> offsets = part_offsets(graph, node, whole.strides);
  std::int64_t elements = 0;
  for (int i = 0; i < node.n_inputs; ++i) {
    const ValueId operand = graph.inputs(node)[i];
    const Type& type = graph.values[operand].type;
    const Window part = window_of(operand);
    if (part.root != whole.root) continue;
    bool there = part.offset == whole.offset + offsets[i] * static_cast<std::int64_t>(dtype_size(type.dtype));
    for (int d = 0; d < type.shape.rank; ++d) there = there && (type.shape[d] == 1 || part.strides[d] == whole.strides[d]);
    if (there) elements += type.numel();
  }
  return elements;
}

}  // namespace tapedeck
