// The Retyper walks over a graph whose inputs have new types: it applies the rules of the table to the attributes of each node,
// retypes its regions, and asks the inference rule of its op. Suspects looks for attributes that hold a changed size although
// no rule covers them.
//     %x: f32[6,10]   %h: f32[40] = reshape(%x) {shape=[40]}      rule h.shape.0=10*b, b=6:  {shape=[60]},  %h: f32[60]
// Which attributes may hold a size is stated with the attributes (FieldUse in kernels/attrs.h).
#include <tapedeck/capture/sizes/retype.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

namespace tapedeck {

namespace {

using Entries = std::unordered_map<std::string, std::vector<const DimTable::Entry*>>;  // by node

// Runs inference over a graph whose inputs have changed.
class Retyper {
 public:
  Retyper(std::string when, const DimTable* table = nullptr, std::vector<std::int64_t> sizes = {})
      : when_(std::move(when)), table_(table), sizes_(std::move(sizes)) {
    if (table_)
      for (const DimTable::Entry& e : table_->entries) entries_[e.node].push_back(&e);
  }

  std::function<void(Graph&, NodeId)> first;

  // `g` has the new types of its inputs already; `before` is the graph with the old types.
  void run(Graph& g, const Graph& before, const std::string& path) {
    for (NodeId n = 0; n < g.node_count(); ++n) {
      if (first && path.empty()) first(g, n);
      retype_node(g, before, n, path);
    }
    for (const Update& u : g.updates)
      if (g.values[u.state].type != g.values[u.value].type)
        throw TypeError(fmt::format("state %{}: {} would be updated with {}{}: state keeps its type", g.value_name(u.state),
                                    to_string(g.values[u.state].type), to_string(g.values[u.value].type), when_));
  }

 private:
  [[noreturn]] void fail(const Graph& g, NodeId n, const std::string& why) const {
    const Node& node = g.nodes[n];
    const std::string_view site = node.origin.site.view();
    const std::string prefix = fmt::format("[{}] ", node.op->name);
    throw TypeError(fmt::format("{}{}, at {}{}{}", why.rfind(prefix, 0) == 0 ? "" : prefix, why, g.node_text(n), when_,
                                site.empty() ? "" : fmt::format(" ({})", site)));
  }

  void retype_node(Graph& g, const Graph& before, NodeId n, const std::string& path) {
    const Node node = g.nodes[n];
    std::vector<Type> outputs;
    if (node.op->is(kDeclaredTypes)) outputs = g.output_types(node);
    if (!entries_.empty() && node.n_outputs > 0) apply_rules(g, n, path + g.value_name(node.first_output), &outputs);
    const std::vector<Type> inputs = g.input_types(node);
    retype_regions(g, before, n, path);
    try {
      infer_types(*node.op, inputs, g.attributes(node), outputs, g.regions_of(node));
    } catch (const TypeError& error) {
      fail(before, n, error.what());
    }
    if (outputs.size() != static_cast<std::size_t>(node.n_outputs)) fail(before, n, "the number of results changes");
    for (std::int32_t i = 0; i < node.n_outputs; ++i) {
      const Type& t = outputs[i];
      if (checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) < 0)
        fail(before, n, fmt::format("its result would be {}, which is too large", to_string(t)));
      g.values[node.first_output + i].type = t;
    }
  }

  // ---- attributes ----

  void apply_rules(Graph& g, NodeId n, const std::string& name, std::vector<Type>* declared) {
    const auto it = entries_.find(name);
    if (it == entries_.end()) return;
    for (const DimTable::Entry* e : it->second) apply_rule(g, n, *e, declared);
  }

  std::int64_t size(const Graph& g, NodeId n, const DimTable::Entry& e) const {
    bool whole = false;
    const std::int64_t value = size_at(e.rule, sizes_, &whole);
    if (!whole) fail(g, n, fmt::format("'{}' follows {}, which gives no whole number", e.field, rule_text(*table_, e.rule)));
    return value;
  }

  [[noreturn]] void no_such(const Graph& g, NodeId n, const DimTable::Entry& e) const {
    fail(g, n,
         fmt::format("the table of dimensions speaks of '{}', element {}, which the node does not have", e.field, e.element));
  }

  void apply_rule(Graph& g, NodeId n, const DimTable::Entry& e, std::vector<Type>* declared) {
    const Node& node = g.nodes[n];
    if (e.field.starts_with("type") && node.op->is(kDeclaredTypes) && !g.literal(node)) {
      const std::size_t k = static_cast<std::size_t>(e.field.back() - '0');
      if (e.field.size() != 5 || k >= declared->size() || e.element < 0 || e.element >= (*declared)[k].shape.rank)
        no_such(g, n, e);
      (*declared)[k].shape[e.element] = size(g, n, e);
      return;
    }
    for (const Field& field : fields_of(*node.op)) {
      if (e.field != field.name) continue;
      if (field.kind == FieldKind::tensor) return set_constant(g, n, e);
      void* at = GraphAccess::attributes(g, node) + field.offset;
      if (field.kind == FieldKind::ints) {
        Ints& list = *static_cast<Ints*>(at);
        if (e.element < 0 || e.element >= list.size) no_such(g, n, e);
        list.items[e.element] = size(g, n, e);
      } else if (field.kind == FieldKind::integer) {
        *static_cast<std::int64_t*>(at) = size(g, n, e);
      } else if (field.kind == FieldKind::real) {
        *static_cast<double*>(at) =
            e.rule.kind == DimRule::Kind::size ? static_cast<double>(size(g, n, e)) : scale_at(e.rule, sizes_);
      } else {
        no_such(g, n, e);
      }
      return;
    }
    no_such(g, n, e);
  }

  // A constant of one floating element.
  void set_constant(Graph& g, NodeId n, const DimTable::Entry& e) {
    const Literal* literal = g.literal(g.nodes[n]);
    if (!literal || !literal->data || literal->type.numel() != 1) no_such(g, n, e);
    const double value = e.rule.kind == DimRule::Kind::size ? static_cast<double>(size(g, n, e)) : scale_at(e.rule, sizes_);
    auto bytes = std::make_shared<std::vector<unsigned char>>(static_cast<std::size_t>(literal->type.bytes()));
    if (literal->type.dtype == DType::f64) {
      std::memcpy(bytes->data(), &value, sizeof value);
    } else if (literal->type.dtype == DType::f32) {
      const auto single = static_cast<float>(value);
      std::memcpy(bytes->data(), &single, sizeof single);
    } else {
      no_such(g, n, e);
    }
    g.constants[literal - g.constants.data()].data = std::shared_ptr<const void>(bytes, bytes->data());
  }

  // ---- regions ----

  // A region reads operands of the node in order, whole (loops, branches) or without their first axis (in a scan). It reads the
  // last operands, as many as the region has inputs beside the index of a loop, or the operands from the first on (gradients of
  // loops). The old types show which operands a region reads and whether it reads them whole; the rule of the op
  // decides afterwards whether that was right.
  void retype_regions(Graph& g, const Graph& before, NodeId n, const std::string& path) {
    const Node& node = g.nodes[n];
    for (std::int32_t r = 0; r < node.n_regions; ++r) {
      const Graph& old = *before.regions_of(node)[r];
      auto region = std::make_shared<Graph>(old);
      const std::int32_t from_end = node.n_inputs - old.n_inputs;
      const std::int32_t shift = reads(before, node, old, from_end) ? from_end : 0;
      for (std::int32_t i = 0; i < old.n_inputs; ++i) region->values[i].type = region_input(g, before, node, old, i, i + shift);
      const std::string inner = node.n_outputs > 0 ? fmt::format("{}{}/{}/", path, g.value_name(node.first_output), r) : path;
      run(*region, old, inner);
      g.regions[node.first_region + r] = std::move(region);
    }
  }

  static Type element(const Type& t) {
    return Type{t.dtype, Shape(std::span<const std::int64_t>(t.shape.sizes + 1, static_cast<std::size_t>(t.shape.rank - 1)))};
  }

  // Whether input i of the region could be operand i + shift, for every i but a loop's index.
  static bool reads(const Graph& g, const Node& node, const Graph& region, std::int32_t shift) {
    for (std::int32_t i = 0; i < region.n_inputs; ++i) {
      if (i + shift < 0) continue;
      const Type &type = region.values[i].type, operand = g.values[g.inputs(node)[i + shift]].type;
      if (type != operand && (operand.shape.rank == 0 || type != element(operand))) return false;
    }
    return true;
  }

  static Type region_input(const Graph& g, const Graph& before, const Node& node, const Graph& region, std::int32_t i,
                           std::int32_t k) {
    const Type& was = region.values[i].type;
    if (k < 0 || k >= node.n_inputs) return was;
    const ValueId v = g.inputs(node)[k];
    const Type &old = before.values[v].type, &now = g.values[v].type;
    if (was == old) return now;
    return old.shape.rank > 0 && was == element(old) ? element(now) : was;
  }

  std::string when_;  // ", with b=4"
  const DimTable* table_;
  std::vector<std::int64_t> sizes_;  // by dim
  Entries entries_;
};

std::int64_t sample_size(const Graph& g, const DimTable& table, std::int32_t dim) {
  for (const DimTable::Axis& a : table.axes)
    for (ValueId v = 0; a.dim == dim && v < g.n_inputs; ++v) {
      const Type& t = g.values[v].type;
      if (g.value_name(v) == a.input && a.axis < t.shape.rank) return t.shape[a.axis];
    }
  return table.dims[dim].min;
}

void check_range(const DimRange& d, std::int64_t size) {
  if (size < d.min || size > d.max)
    throw TypeError(fmt::format("dimension '{}' is {}, declared from {} to {}", d.name, size, d.min,
                                d.bounded() ? std::to_string(d.max) : "any size"));
}

// ---- what inference alone cannot know ----

// Finds attributes that hold a number that changed with the inputs.
class Suspects {
 public:
  Suspects(const Graph& before, const Graph& after) : g_(before) {
    changed_.resize(g_.values.size());
    for (std::size_t v = 0; v < g_.values.size(); ++v) {
      const Type &old = g_.values[v].type, &now = after.values[v].type;
      if (old == now) continue;
      changed_[v] = true;
      for (int i = 0; i < old.shape.rank; ++i)
        if (old.shape[i] != now.shape[i]) numbers_.insert(old.shape[i]);
      numbers_.insert(old.numel());
    }
    for (const Node& node : g_.nodes)
      for (ValueId v : g_.inputs(node))
        for (std::int32_t i = 0; changed_[v] && i < node.n_outputs; ++i) changed_[node.first_output + i] = true;
  }

  std::string first(const std::vector<NodeId>& but) {
    for (NodeId n = 0; n < g_.node_count() && found_.empty(); ++n)
      if (std::find(but.begin(), but.end(), n) == but.end()) check_node(n);
    return found_;
  }

 private:
  void check_node(NodeId n) {
    const Node& node = g_.nodes[n];
    bool concerned = node.n_inputs == 0 || node.op->is(kRandom);
    for (ValueId v : g_.inputs(node)) concerned = concerned || changed_[v];
    if (!concerned) return;
    if (const Literal* literal = g_.literal(node)) {
      if (literal->data && literal->type.numel() == 1) check_real(n, "value", element(*literal));
      return;
    }
    for (const Field& field : fields_of(*node.op)) {
      if (field.use == FieldUse::never_size) continue;
      const void* attrs = g_.attributes(node);
      if (field.kind == FieldKind::integer) check_size(n, field.name, field_of<std::int64_t>(attrs, field));
      if (field.kind == FieldKind::real && field.use == FieldUse::may_scale)
        check_real(n, field.name, field_of<double>(attrs, field));
      if (field.kind == FieldKind::ints)
        for (std::int64_t item : field_of<Ints>(attrs, field)) check_size(n, field.name, item);
    }
  }

  static double element(const Literal& literal) {
    const void* p = literal.data.get();
    switch (literal.type.dtype) {
      case DType::f32:
        return *static_cast<const float*>(p);
      case DType::f64:
        return *static_cast<const double*>(p);
      case DType::i32:
        return *static_cast<const std::int32_t*>(p);
      case DType::i64:
        return static_cast<double>(*static_cast<const std::int64_t*>(p));
      default:
        return 0;
    }
  }

  void check_size(NodeId n, const char* field, std::int64_t value) {
    if (numbers_.count(value)) refuse(n, field, std::to_string(value));
  }

  // Refuses n, or one over n, as f64 or f32.
  void check_real(NodeId n, const char* field, double value) {
    for (const double whole : {value, 1 / value}) {
      if (!(std::abs(whole) < 9e15)) continue;
      const double nearest = std::nearbyint(whole);
      const bool close = std::abs(whole - nearest) <= 1e-6 * std::abs(whole);
      if (nearest >= 2 && close && numbers_.count(static_cast<std::int64_t>(nearest)))
        refuse(n, field, fmt::format("{}", value));
    }
  }

  void refuse(NodeId n, const char* field, const std::string& value) {
    const Node& node = g_.nodes[n];
    const std::string_view site = node.origin.site.view();
    found_ = fmt::format("[{}] '{}' holds {}, a size that changes, and one recording does not say how it follows: {}{}",
                         node.op->name, field, value, g_.node_text(n), site.empty() ? "" : fmt::format(" ({})", site));
  }

  const Graph& g_;
  std::vector<bool> changed_;  // by value: whether its type changed, or the type of an operand
  std::set<std::int64_t> numbers_;
  std::string found_;
};

}  // namespace

Graph retype(const Graph& graph, const DimTable& table, const Sizes& sizes) {
  std::vector<std::int64_t> by_dim;
  for (std::size_t d = 0; d < table.dims.size(); ++d) {
    const auto it = sizes.find(table.dims[d].name);
    by_dim.push_back(it != sizes.end() ? it->second : sample_size(graph, table, static_cast<std::int32_t>(d)));
    check_range(table.dims[d], by_dim.back());
  }
  for (const auto& [name, size] : sizes)
    if (table.find(name) == kNone) throw TypeError(fmt::format("no dimension '{}' is declared", name));
  Graph result = graph;
  for (const DimTable::Axis& a : table.axes) {
    bool found = false;
    for (ValueId v = 0; v < graph.n_inputs; ++v) {
      Shape& shape = result.values[v].type.shape;
      if (graph.value_name(v) != a.input || a.axis >= shape.rank) continue;
      shape[a.axis] = by_dim[a.dim];
      found = true;
    }
    if (!found)
      throw TypeError(
          fmt::format("the table of dimensions speaks of axis {} of '{}', which is no input of the graph", a.axis, a.input));
  }
  std::string when;
  for (std::size_t d = 0; d < by_dim.size(); ++d)
    when += fmt::format("{}{}={}", d ? ", " : ", with ", table.dims[d].name, by_dim[d]);
  Retyper(when, &table, by_dim).run(result, graph, "");
  return result;
}

Graph retype(const Graph& graph, const std::map<std::string, Type>& inputs) {
  Graph result = graph;
  std::string when;
  for (const auto& [name, type] : inputs) {
    ValueId v = 0;
    while (v < graph.n_inputs && graph.value_name(v) != name) ++v;
    if (v == graph.n_inputs) throw TypeError(fmt::format("the graph has no input '{}'", name));
    Type& now = result.values[v].type;
    if (now.dtype != type.dtype || now.shape.rank != type.shape.rank)
      throw TypeError(fmt::format("input '{}' is {}: {} changes more than its sizes", name, to_string(now), to_string(type)));
    now = type;
    when += fmt::format("{}{}: {}", when.empty() ? ", with " : ", ", name, to_string(type));
  }
  Retyper(when).run(result, graph, "");
  const std::string held = held_size(graph, result);
  if (!held.empty()) throw TypeError(held + "; record the step with named dimensions");
  return result;
}

Graph inferred_again(Graph changed, const Graph& before, const std::string& when,
                     const std::function<void(Graph&, NodeId)>& first) {
  Retyper retyper(when);
  retyper.first = first;
  retyper.run(changed, before, "");
  return changed;
}

std::string held_size(const Graph& before, const Graph& after, const std::vector<NodeId>& but) {
  return Suspects(before, after).first(but);
}

Sizes sizes_of(const Graph& graph, const DimTable& table, const std::map<std::string, Type>& inputs) {
  Sizes sizes;
  std::map<std::string, std::string> said_by;
  for (ValueId v = 0; v < graph.n_inputs; ++v) {
    const std::string name = graph.value_name(v);
    const auto it = inputs.find(name);
    if (it == inputs.end()) continue;
    Type expected = graph.values[v].type;
    if (it->second.shape.rank != expected.shape.rank || it->second.dtype != expected.dtype)
      throw TypeError(fmt::format("input '{}' is {}, the graph wants {} but for its named dimensions", name,
                                  to_string(it->second), to_string(expected)));
    for (const DimTable::Axis& a : table.axes) {
      if (a.input != name || a.axis >= expected.shape.rank) continue;
      const DimRange& d = table.dims[a.dim];
      const std::int64_t size = it->second.shape[a.axis];
      const auto [known, fresh] = sizes.emplace(d.name, size);
      if (!fresh && known->second != size)
        throw TypeError(fmt::format("dimension '{}' is {} by {} and {} by axis {} of '{}'", d.name, known->second,
                                    said_by[d.name], size, a.axis, name));
      if (fresh) said_by[d.name] = fmt::format("axis {} of '{}'", a.axis, name);
      check_range(d, size);
      expected.shape[a.axis] = size;
    }
    if (expected != it->second)
      throw TypeError(fmt::format("input '{}' is {}, the graph wants {} but for its named dimensions", name,
                                  to_string(it->second), to_string(expected)));
  }
  return sizes;
}

}  // namespace tapedeck
