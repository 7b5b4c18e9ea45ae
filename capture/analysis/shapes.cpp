// Shapes are spread in two steps. Relations asks the inference rule of each op twice and three times the size of one axis, and
// notes which axes answer. Then known sizes spread along equal axes and sums until nothing new is found.
//     concat(%a [2,3], %b [4,3]) {axis=0}      axis 1 of %a, of %b and of the result are equal
//                                              axis 0 of the result = axis 0 of %a + axis 0 of %b
#include <tapedeck/capture/analysis/shapes.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

namespace tapedeck {

namespace {

using Axis = std::int32_t;  // the axes of the operands one after another, then the axes of the results

// result = sum of sign * group + offset, where a group is a set of operand axes that are equal.
struct Relation {
  Axis result = 0;
  std::vector<Axis> groups;  // one axis of each
  std::vector<int> signs;    // 1 or -1: the window of a convolution subtracts
  std::int64_t offset = 0;
};

struct Relations {
  std::vector<std::pair<Axis, Axis>> equal;
  std::vector<Relation> sums;
};

// Asks the inference rule of one node how its axes depend on each other.
class Probe {
 public:
  Probe(const Graph& g, const Node& node) : g_(g), node_(node), sample_(g.input_types(node)) {
    for (const Type& t : sample_) {
      first_.push_back(n_axes_);
      n_axes_ += t.shape.rank;
    }
  }

  Relations ask() {
    Relations found;
    std::vector<Axis> group(static_cast<std::size_t>(n_axes_));
    std::iota(group.begin(), group.end(), 0);
    for (Axis a = 0; a < n_axes_; ++a) {
      if (group[a] != a || size(a) == 0) continue;
      for (Axis b : partners(a, group)) {
        group[b] = a;
        found.equal.emplace_back(a, b);
      }
    }
    relate_results(group, &found);
    return found;
  }

 private:
  std::int64_t size(Axis a) const {
    const auto [operand, axis] = place(a);
    return sample_[operand].shape[axis];
  }

  std::pair<std::size_t, int> place(Axis a) const {
    std::size_t operand = first_.size() - 1;
    while (first_[operand] > a) --operand;
    return {operand, a - first_[operand]};
  }

  // The types of the results if these axes are `times` as large as in the sample; nothing if the op refuses.
  std::optional<std::vector<Type>> grown(const std::vector<Axis>& axes, std::int64_t times) const {
    std::vector<Type> inputs = sample_;
    std::vector<unsigned char> attrs;
    if (node_.attrs != kNone) {
      const auto* from = static_cast<const unsigned char*>(g_.attributes(node_));
      attrs.assign(from, from + node_.op->attrs->size);
    }
    for (Axis a : axes) {
      const auto [operand, axis] = place(a);
      inputs[operand].shape[axis] *= times;
      if (operand == 0 && !attrs.empty()) follow(attrs.data(), axis, size(a), size(a) * times);
    }
    std::vector<Type> outputs;
    if (node_.op->is(kDeclaredTypes)) outputs = g_.output_types(node_);
    try {
      infer_types(*node_.op, inputs, attrs.empty() ? nullptr : attrs.data(), outputs, g_.regions_of(node_));
    } catch (const Error&) {
      return std::nullopt;
    }
    return outputs;
  }

  // An attribute that covers a whole axis (of a slice, or a shape that repeats the operand's) stands for "the whole axis".
  void follow(unsigned char* attrs, int axis, std::int64_t old_size, std::int64_t new_size) const {
    const int rank = sample_[0].shape.rank;
    const auto list = [&](const char* name) -> Ints* {
      for (const Field& field : fields_of(*node_.op))
        if (field.kind == FieldKind::ints && std::strcmp(field.name, name) == 0)
          return reinterpret_cast<Ints*>(attrs + field.offset);
      return nullptr;
    };
    Ints *starts = list("starts"), *stops = list("stops"), *shape = list("shape");
    if (stops && stops->size == rank && stops->items[axis] == old_size && (!starts || starts->items[axis] == 0))
      stops->items[axis] = new_size;
    if (shape && shape->size == rank && shape->items[axis] == old_size) shape->items[axis] = new_size;
  }

  // The axes that must grow with `a`: none if `a` may grow alone, one other axis, or all axes of its size that must grow too.
  std::vector<Axis> partners(Axis a, const std::vector<Axis>& group) const {
    if (grown({a}, 2)) return {};
    std::vector<Axis> alike;
    for (Axis b = a + 1; b < n_axes_; ++b)
      if (group[b] == b && size(b) == size(a)) alike.push_back(b);
    for (Axis b : alike)
      if (grown({a, b}, 2)) return {b};
    std::vector<Axis> all = alike;
    all.push_back(a);
    if (!grown(all, 2)) return {};
    for (std::size_t i = 0; i + 1 < all.size();) {
      std::vector<Axis> fewer = all;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (grown(fewer, 2))
        all = std::move(fewer);
      else
        ++i;
    }
    all.pop_back();
    return all;
  }

  void relate_results(const std::vector<Axis>& group, Relations* found) const {
    const std::vector<Type> now = g_.output_types(node_);
    std::vector<std::vector<Axis>> members(static_cast<std::size_t>(n_axes_));
    for (Axis a = 0; a < n_axes_; ++a) members[group[a]].push_back(a);
    Axis result = n_axes_;
    for (std::size_t o = 0; o < now.size(); ++o)
      for (int axis = 0; axis < now[o].shape.rank; ++axis, ++result) relate(o, axis, result, now, members, found);
  }

  // How one axis of a result answers to each group of operand axes.
  void relate(std::size_t o, int axis, Axis result, const std::vector<Type>& now, const std::vector<std::vector<Axis>>& members,
              Relations* found) const {
    Relation relation{result, {}, {}, now[o].shape[axis]};
    for (Axis a = 0; a < n_axes_; ++a) {
      const auto& group = members[a];
      if (group.empty() || size(a) == 0) continue;
      const auto twice = grown(group, 2), thrice = grown(group, 3);
      if (!twice || !thrice) continue;  // repeated, or held by something else
      if (o >= twice->size() || (*twice)[o].shape.rank != now[o].shape.rank || (*thrice)[o].shape.rank != now[o].shape.rank)
        return;
      const std::int64_t by = (*twice)[o].shape[axis] - now[o].shape[axis],
                         again = (*thrice)[o].shape[axis] - (*twice)[o].shape[axis];
      if (by == 0 && again == 0) continue;
      if (by != again || (by != size(a) && by != -size(a))) return;  // not one for one: forwards only
      relation.groups.push_back(a);
      relation.signs.push_back(by > 0 ? 1 : -1);
      relation.offset -= by;
    }
    if (relation.groups.size() == 1 && relation.offset == 0 && relation.signs[0] == 1)
      found->equal.emplace_back(relation.groups[0], result);
    else if (!relation.groups.empty())
      found->sums.push_back(std::move(relation));
  }

  const Graph& g_;
  const Node& node_;
  std::vector<Type> sample_;
  std::vector<Axis> first_;  // for each operand: the number of its first axis
  Axis n_axes_ = 0;          // of operands
};

class Spread {
 public:
  explicit Spread(const Graph& g) : g_(g) {
    for (const Value& v : g.values) {
      first_.push_back(static_cast<std::int32_t>(parent_.size()));
      for (int i = 0; i < v.type.shape.rank; ++i) {
        parent_.push_back(static_cast<std::int32_t>(parent_.size()));
        sizes_.push_back(kUnknownSize);
      }
    }
  }

  void know(const std::string& name, const PartialShape& shape) {
    ValueId v = 0;
    while (v < g_.value_count() && g_.value_name(v) != name) ++v;
    if (v == g_.value_count()) throw TypeError(fmt::format("shapes: the graph has no value '{}'", name));
    const int rank = g_.values[v].type.shape.rank;
    if (shape.size() != static_cast<std::size_t>(rank))
      throw TypeError(fmt::format("shapes: '{}' has {} dimensions in the graph, {} are given", name, rank, shape.size()));
    for (int i = 0; i < rank; ++i)
      if (shape[i] != kUnknownSize) set(axis_of(v, i), shape[i], kNone);
  }

  void run() {
    for (NodeId n = 0; n < g_.node_count(); ++n) tie(n);
    do {
      changed_ = false;
      for (NodeId n = 0; n < g_.node_count(); ++n) {
        for (const Relation& r : sums_[n]) solve(n, r);
        infer_forward(n);
      }
    } while (changed_);
  }

  PartialShape shape(ValueId v) {
    PartialShape out;
    for (int i = 0; i < g_.values[v].type.shape.rank; ++i) out.push_back(sizes_[find(axis_of(v, i))]);
    return out;
  }

 private:
  std::int32_t axis_of(ValueId v, int axis) const { return first_[v] + axis; }

  std::int32_t find(std::int32_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }

  std::string shapes_of(NodeId n) {
    std::string text;
    for (ValueId v : g_.inputs(g_.nodes[n])) {
      text += fmt::format("{}%{} [", text.empty() ? "" : ", ", g_.value_name(v));
      const PartialShape s = shape(v);
      for (std::size_t i = 0; i < s.size(); ++i)
        text += fmt::format("{}{}", i ? "," : "", s[i] == kUnknownSize ? "?" : std::to_string(s[i]));
      text += "]";
    }
    return text;
  }

  [[noreturn]] void contradiction(NodeId n, const std::string& why) {
    if (n == kNone) throw TypeError("shapes: " + why);
    const Node& node = g_.nodes[n];
    const std::string_view site = node.origin.site.view();
    throw TypeError(error_text(
        node.op->name,
        fmt::format("{}, at {} with {}{}", why, g_.node_text(n), shapes_of(n), site.empty() ? "" : fmt::format(" ({})", site)),
        {}));
  }

  void set(std::int32_t axis, std::int64_t size, NodeId n) {
    std::int64_t& known = sizes_[find(axis)];
    if (known == size) return;
    if (known != kUnknownSize) contradiction(n, fmt::format("a size would be both {} and {}", known, size));
    if (size < 0) contradiction(n, fmt::format("a size would be {}", size));
    known = size;
    changed_ = true;
  }

  void unite(std::int32_t a, std::int32_t b, NodeId n) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    const std::int64_t known = sizes_[b];
    if (known != kUnknownSize) set(a, known, n);
    parent_[b] = a;
    changed_ = true;
  }

  std::int32_t axis_of_node(NodeId n, Axis a) const {
    const Node& node = g_.nodes[n];
    for (ValueId v : g_.inputs(node)) {
      const int rank = g_.values[v].type.shape.rank;
      if (a < rank) return axis_of(v, a);
      a -= rank;
    }
    for (ValueId v = node.first_output;; ++v) {
      const int rank = g_.values[v].type.shape.rank;
      if (a < rank) return axis_of(v, a);
      a -= rank;
    }
  }

  void tie(NodeId n) {
    const Node& node = g_.nodes[n];
    sums_.emplace_back();
    if (const Literal* literal = g_.literal(node)) {
      for (int i = 0; i < literal->type.shape.rank; ++i) set(axis_of(node.first_output, i), literal->type.shape[i], n);
      return;
    }
    if (node.n_inputs == 0) return;
    Relations relations = Probe(g_, node).ask();
    for (const auto& [a, b] : relations.equal) unite(axis_of_node(n, a), axis_of_node(n, b), n);
    sums_.back() = std::move(relations.sums);
  }

  // The one size in a sum that is not known.
  void solve(NodeId n, const Relation& r) {
    std::int64_t rest = sizes_[find(axis_of_node(n, r.result))];
    const bool result_known = rest != kUnknownSize;
    std::int64_t total = r.offset;
    std::int32_t missing = kNone;
    int sign = 1;
    for (std::size_t i = 0; i < r.groups.size(); ++i) {
      const std::int32_t axis = find(axis_of_node(n, r.groups[i]));
      if (sizes_[axis] != kUnknownSize) {
        total += r.signs[i] * sizes_[axis];
        continue;
      }
      if (missing != kNone || !result_known) return;
      missing = axis;
      sign = r.signs[i];
    }
    if (missing == kNone) return set(axis_of_node(n, r.result), total, n);
    set(missing, sign * (rest - total), n);
  }

  // The op itself gives the result types once all operands are known.
  void infer_forward(NodeId n) {
    const Node& node = g_.nodes[n];
    if (g_.literal(node) || node.op->is(kDeclaredTypes)) return;
    std::vector<Type> inputs = g_.input_types(node), outputs;
    bool as_sample = true;
    for (std::int32_t i = 0; i < node.n_inputs; ++i) {
      const PartialShape s = shape(g_.inputs(node)[i]);
      for (std::size_t k = 0; k < s.size(); ++k) {
        if (s[k] == kUnknownSize) return;
        std::int64_t& size = inputs[i].shape[static_cast<int>(k)];
        as_sample = as_sample && size == s[k];
        size = s[k];
      }
    }
    if (tied_attributes(node) && !as_sample) return;  // its numbers stand for the sample's sizes
    try {
      infer_types(*node.op, inputs, g_.attributes(node), outputs, g_.regions_of(node));
    } catch (const Error& error) {
      contradiction(n, error.what());
    }
    for (std::int32_t i = 0; i < node.n_outputs; ++i)
      for (int k = 0; k < outputs[i].shape.rank; ++k) set(axis_of(node.first_output + i, k), outputs[i].shape[k], n);
  }

  static bool tied_attributes(const Node& node) {
    for (const Field& field : fields_of(*node.op))
      if (std::strcmp(field.name, "stops") == 0 || std::strcmp(field.name, "shape") == 0) return true;
    return false;
  }

  const Graph& g_;
  std::vector<std::int32_t> first_;          // by value: its first axis
  std::vector<std::int32_t> parent_;         // by axis: union-find
  std::vector<std::int64_t> sizes_;          // by representative
  std::vector<std::vector<Relation>> sums_;  // by node
  bool changed_ = false;
};

}  // namespace

std::map<std::string, PartialShape> infer_shapes(const Graph& graph, const std::map<std::string, PartialShape>& known) {
  Spread spread(graph);
  for (const auto& [name, shape] : known) spread.know(name, shape);
  spread.run();
  std::map<std::string, PartialShape> found;
  for (ValueId v = 0; v < graph.value_count(); ++v) found[graph.value_name(v)] = spread.shape(v);
  return found;
}

}  // namespace tapedeck
