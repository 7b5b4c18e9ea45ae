#include <tapedeck/capture/sizes/dim_rules.h>

#include <tapedeck/capture/sizes/retype.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

namespace tapedeck {

namespace {

// What stands in the way; `more` as in DimFindings.
struct Obstacle {
  std::string why;
  bool more = false;
};

using Monomial = std::vector<std::int32_t>;  // dims whose product it is; none: 1

// ---- solving one number ----

class Solver {
 public:
  explicit Solver(const std::vector<DimSample>& samples) {
    std::set<std::vector<std::int64_t>> distinct;
    for (const DimSample& s : samples) {
      sizes_.push_back(s.sizes);
      distinct.insert(s.sizes);
    }
    n_distinct_ = distinct.size();
    for (std::size_t d = 0; d < sizes_[0].size(); ++d)
      if (std::any_of(sizes_.begin(), sizes_.end(), [&](const auto& s) { return s[d] != sizes_[0][d]; }))
        varied_.push_back(static_cast<std::int32_t>(d));
    for (std::int32_t d : varied_) single_.push_back({d});
    products_ = single_;
    for (std::size_t i = 0; i < varied_.size(); ++i)
      for (std::size_t k = i; k < varied_.size(); ++k) products_.push_back({varied_[i], varied_[k]});
  }

  // The rule for values that differ, by sample.
  DimRule size_rule(const std::vector<std::int64_t>& values, const std::string& what) const {
    std::vector<std::vector<Monomial>> kinds[4];
    for (const Monomial& m : products_) kinds[0].push_back({m});
    for (const Monomial& m : single_) kinds[1].push_back({m, {}});
    for (std::size_t i = 0; i < single_.size(); ++i)
      for (std::size_t k = i + 1; k < single_.size(); ++k) kinds[2].push_back({single_[i], single_[k]});
    for (std::size_t i = single_.size(); i < products_.size(); ++i) kinds[3].push_back({products_[i], {}});
    for (const auto& kind : kinds)
      if (const auto rule = only_fit(kind, values, what)) return *rule;
    throw Obstacle{fmt::format("{} is {} at sizes {}: no function of the dimensions that this version knows", what,
                               fmt::join(values, ", "), sizes_text()),
                   false};
  }

  DimRule real_rule(const std::vector<double>& values, const std::string& what) const {
    const bool whole =
        std::all_of(values.begin(), values.end(), [](double v) { return v >= 0 && v < 9e15 && v == std::floor(v); });
    std::vector<DimRule> fits;
    if (!whole) {
      for (const Monomial& m : products_)
        if (const auto rule = fraction(m, values)) fits.push_back(*rule);
      if (fits.size() > 1) throw Obstacle{ambiguous(what), true};
      if (fits.size() == 1) return fits[0];
      throw Obstacle{fmt::format("{} is {} at sizes {}, neither a multiple of a dimension nor one over it; pass it as an input",
                                 what, fmt::join(values, ", "), sizes_text()),
                     false};
    }
    std::vector<std::int64_t> integers(values.begin(), values.end());
    return size_rule(integers, what);
  }

  std::string sizes_text() const {
    std::string text;
    for (const auto& s : sizes_) text += fmt::format("{}({})", text.empty() ? "" : " ", fmt::join(s, ","));
    return text;
  }

 private:
  std::string ambiguous(const std::string& what) const {
    return fmt::format(
        "{} follows more than one function of the dimensions at sizes {}: a call where they vary apart would tell", what,
        sizes_text());
  }

  std::int64_t product(const Monomial& m, std::size_t sample) const {
    std::int64_t p = 1;
    for (std::int32_t d : m) p *= sizes_[sample][d];
    return p;
  }

  // The one candidate of a kind that fits; throws if several do, or if it is not yet confirmed by a recording of its own.
  std::optional<DimRule> only_fit(const std::vector<std::vector<Monomial>>& kind, const std::vector<std::int64_t>& values,
                                  const std::string& what) const {
    std::vector<DimRule> fits;
    for (const auto& support : kind) {
      if (n_distinct_ <= support.size()) {
        throw Obstacle{fmt::format("{} is {} at sizes {}: a call at one more size would confirm how it follows", what,
                                   fmt::join(values, ", "), sizes_text()),
                       true};
      }
      if (auto rule = fit(support, values)) fits.push_back(std::move(*rule));
    }
    if (fits.size() > 1) throw Obstacle{ambiguous(what), true};
    return fits.empty() ? std::nullopt : std::optional(fits[0]);
  }

  // Coefficients of one or two monomials that explain every value, exactly.
  std::optional<DimRule> fit(const std::vector<Monomial>& support, const std::vector<std::int64_t>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t k = support.size() == 1 ? i : i + 1; k < values.size(); ++k)
        if (auto rule = through(support, values, i, k)) return explains(*rule, values) ? rule : std::nullopt;
    return std::nullopt;
  }

  std::optional<DimRule> through(const std::vector<Monomial>& support, const std::vector<std::int64_t>& values, std::size_t i,
                                 std::size_t k) const {
    DimRule rule;
    __int128 factors[2] = {values[i], 0}, divisor = product(support[0], i);
    if (support.size() == 2) {  // Cramer
      const __int128 a = product(support[0], i), b = product(support[1], i), c = product(support[0], k),
                     d = product(support[1], k);
      divisor = a * d - b * c;
      factors[0] = values[i] * d - b * values[k];
      factors[1] = a * values[k] - values[i] * c;
    }
    if (divisor == 0) return std::nullopt;
    if (divisor < 0) divisor = -divisor, factors[0] = -factors[0], factors[1] = -factors[1];
    const auto common = std::gcd(std::gcd(static_cast<std::int64_t>(factors[0]), static_cast<std::int64_t>(factors[1])),
                                 static_cast<std::int64_t>(divisor));
    for (std::size_t t = 0; t < support.size(); ++t)
      if (factors[t] != 0) rule.terms.push_back({static_cast<std::int64_t>(factors[t] / common), support[t]});
    rule.divisor = static_cast<std::int64_t>(divisor / common);
    return rule;
  }

  bool explains(const DimRule& rule, const std::vector<std::int64_t>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      bool whole = false;
      const std::int64_t value = size_at(rule, sizes_[i], &whole);
      if (!whole || value != values[i]) return false;
    }
    return true;
  }

  // c / m or c * m, the same bits at every sample; c is looked for among plain numbers first.
  std::optional<DimRule> fraction(const Monomial& m, const std::vector<double>& values) const {
    for (const DimRule::Kind kind : {DimRule::Kind::fraction, DimRule::Kind::multiple})
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto p = static_cast<double>(product(m, i));
        if (p == 0) continue;
        const double raw = kind == DimRule::Kind::fraction ? values[i] * p : values[i] / p;
        for (const double factor :
             {std::nearbyint(raw), std::nearbyint(raw * 1048576) / 1048576, static_cast<double>(static_cast<float>(raw)), raw})
          for (const bool single : {false, true}) {
            DimRule rule;
            rule.kind = kind;
            rule.factor = factor;
            rule.dims = m;
            rule.single = single;
            if (same_bits(rule, values)) return rule;
          }
      }
    return std::nullopt;
  }

  bool same_bits(const DimRule& rule, const std::vector<double>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = scale_at(rule, sizes_[i]);
      if (std::memcmp(&value, &values[i], sizeof value) != 0) return false;
    }
    return true;
  }

  std::vector<std::vector<std::int64_t>> sizes_;  // by sample
  std::size_t n_distinct_ = 0;
  std::vector<std::int32_t> varied_;
  std::vector<Monomial> single_, products_;
};

// ---- walking the recordings side by side ----

class Comparer {
 public:
  Comparer(DimTable* table, const std::vector<DimSample>& samples) : table_(*table), solver_(samples) {}

  void compare(const std::vector<const Graph*>& graphs, const std::string& path) {
    const Graph& a = *graphs[0];
    for (const Graph* g : graphs) {
      if (g->node_count() != a.node_count())
        different(fmt::format("{} nodes were recorded at one size, {} at another", a.node_count(), g->node_count()));
      if (g->n_inputs != a.n_inputs || g->n_state != a.n_state || g->outputs != a.outputs ||
          g->updates.size() != a.updates.size())
        different("inputs, state or results are others at another size");
      for (std::size_t u = 0; u < a.updates.size(); ++u)
        if (g->updates[u].state != a.updates[u].state || g->updates[u].value != a.updates[u].value)
          different("updates are others at another size");
    }
    for (NodeId n = 0; n < a.node_count(); ++n) compare_node(graphs, n, path);
  }

 private:
  [[noreturn]] static void different(const std::string& why) { throw Obstacle{why, false}; }

  static const Node& node_of(const Graph* g, NodeId n) { return g->nodes[n]; }

  void compare_node(const std::vector<const Graph*>& graphs, NodeId n, const std::string& path) {
    const Graph& a = *graphs[0];
    const Node& x = node_of(&a, n);
    for (const Graph* g : graphs) {
      const Node& y = node_of(g, n);
      const auto p = a.inputs(x), q = g->inputs(y);
      if (x.op != y.op || x.n_outputs != y.n_outputs || x.n_regions != y.n_regions ||
          !std::equal(p.begin(), p.end(), q.begin(), q.end()))
        different(fmt::format("node {} was `{}` at one size and `{}` at another ({})", n, a.node_text(n), g->node_text(n),
                              x.origin.site.view()));
    }
    name_ = x.n_outputs > 0 ? path + a.value_name(x.first_output) : "";
    if (a.literal(x))
      compare_literals(graphs, n);
    else
      compare_fields(graphs, n);
    for (std::int32_t r = 0; r < x.n_regions; ++r) {
      std::vector<const Graph*> regions;
      for (const Graph* g : graphs) regions.push_back(g->regions_of(node_of(g, n))[r].get());
      const std::string inner = x.n_outputs > 0 ? fmt::format("{}{}/{}/", path, a.value_name(x.first_output), r) : path;
      compare(regions, inner);
    }
  }

  std::string what(const Graph& g, NodeId n, const std::string& field) const {
    return fmt::format("'{}' of `{}` ({})", field, g.node_text(n), node_of(&g, n).origin.site.view());
  }

  void add(const Graph& g, NodeId n, const std::string& field, std::int32_t element, DimRule rule) {
    if (name_.empty() || name_.find_first_of(",=@") != name_.npos)
      different(fmt::format("the attribute {} changes, and its node has no name to speak of it by", what(g, n, field)));
    table_.entries.push_back({name_, field, element, std::move(rule)});
  }

  template <class Get>
  void compare_sizes(const std::vector<const Graph*>& graphs, NodeId n, const std::string& field, std::int32_t element,
                     Get get) {
    std::vector<std::int64_t> values;
    for (const Graph* g : graphs) values.push_back(get(*g, node_of(g, n)));
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == values[0]; })) return;
    add(*graphs[0], n, field, element, solver_.size_rule(values, what(*graphs[0], n, field)));
  }

  void compare_fields(const std::vector<const Graph*>& graphs, NodeId n) {
    const Graph& a = *graphs[0];
    const Op& op = *node_of(&a, n).op;
    for (const Field& field : fields_of(op)) {
      const auto at = [&](const Graph& g, const Node& node) { return g.attributes(node); };
      switch (field.kind) {
        case FieldKind::integer:
          compare_sizes(graphs, n, field.name, -1,
                        [&](const Graph& g, const Node& node) { return field_of<std::int64_t>(at(g, node), field); });
          break;
        case FieldKind::ints: {
          const std::int32_t size = field_of<Ints>(at(a, node_of(&a, n)), field).size;
          for (const Graph* g : graphs)
            if (field_of<Ints>(at(*g, node_of(g, n)), field).size != size)
              different(what(a, n, field.name) + " has another length at another size");
          for (std::int32_t i = 0; i < size; ++i)
            compare_sizes(graphs, n, field.name, i,
                          [&](const Graph& g, const Node& node) { return field_of<Ints>(at(g, node), field)[i]; });
          break;
        }
        case FieldKind::real: {
          std::vector<double> values;
          for (const Graph* g : graphs) values.push_back(field_of<double>(at(*g, node_of(g, n)), field));
          compare_reals(a, n, field.name, values);
          break;
        }
        case FieldKind::boolean:
        case FieldKind::dtype:
        case FieldKind::string:
        case FieldKind::tensor:
          for (const Graph* g : graphs)
            if (!same_word(field, at(a, node_of(&a, n)), at(*g, node_of(g, n))))
              different(what(a, n, field.name) + " is another at another size");
          break;
      }
    }
    if (op.is(kDeclaredTypes)) compare_declared(graphs, n);
  }

  static bool same_word(const Field& field, const void* x, const void* y) {
    switch (field.kind) {
      case FieldKind::boolean:
        return field_of<bool>(x, field) == field_of<bool>(y, field);
      case FieldKind::dtype:
        return field_of<DType>(x, field) == field_of<DType>(y, field);
      case FieldKind::string:
        return field_of<Name>(x, field) == field_of<Name>(y, field);
      default:
        return true;
    }
  }

  void compare_reals(const Graph& a, NodeId n, const std::string& field, const std::vector<double>& values) {
    const auto same = [&](double v) { return std::memcmp(&v, &values[0], sizeof v) == 0; };
    if (std::all_of(values.begin(), values.end(), same)) return;
    add(a, n, field, -1, solver_.real_rule(values, what(a, n, field)));
  }

  void compare_declared(const std::vector<const Graph*>& graphs, NodeId n) {
    const Graph& a = *graphs[0];
    const Node& x = node_of(&a, n);
    for (std::int32_t i = 0; i < std::min(x.n_outputs, 10); ++i) {
      const auto type = [&](const Graph& g, const Node& node) -> const Type& { return g.values[node.first_output + i].type; };
      for (const Graph* g : graphs)
        if (type(*g, node_of(g, n)).shape.rank != type(a, x).shape.rank)
          different(what(a, n, "type") + " has another rank at another size");
      for (std::int32_t axis = 0; axis < type(a, x).shape.rank; ++axis)
        compare_sizes(graphs, n, fmt::format("type{}", i), axis,
                      [&](const Graph& g, const Node& node) { return type(g, node).shape[axis]; });
    }
  }

  // Constants baked in must be the same, but for a single floating number that follows a dimension (the 1/n of a mean).
  void compare_literals(const std::vector<const Graph*>& graphs, NodeId n) {
    const Graph& a = *graphs[0];
    const Literal& p = *a.literal(node_of(&a, n));
    bool same = true;
    for (const Graph* g : graphs) {
      const Literal& q = *g->literal(node_of(g, n));
      if (p.type != q.type)
        different(fmt::format(
            "the constant %{}: {} is baked in as {} at another size ({}); compute it inside the step, or pass it as an input",
            a.value_name(node_of(&a, n).first_output), to_string(p.type), to_string(q.type),
            node_of(&a, n).origin.site.view()));
      same = same &&
             (p.data == q.data ||
              (p.data && q.data && std::memcmp(p.data.get(), q.data.get(), static_cast<std::size_t>(p.type.bytes())) == 0));
    }
    if (same) return;
    std::vector<double> values;
    for (const Graph* g : graphs) {
      const Literal& q = *g->literal(node_of(g, n));
      if (q.type.numel() != 1 || !q.data || (q.type.dtype != DType::f32 && q.type.dtype != DType::f64))
        different(
            fmt::format("the constant %{}: {} differs between sizes ({}); compute it inside the step, or pass it as an input",
                        a.value_name(node_of(&a, n).first_output), to_string(p.type), node_of(&a, n).origin.site.view()));
      values.push_back(q.type.dtype == DType::f32 ? static_cast<double>(*static_cast<const float*>(q.data.get()))
                                                  : *static_cast<const double*>(q.data.get()));
    }
    compare_reals(a, n, tensor_field(*node_of(&a, n).op)->name, values);
  }

  DimTable& table_;
  Solver solver_;
  std::string name_;  // of the node at hand, in the words of DimTable::Entry
};

// The graph at each recorded size must be what was recorded there.
void confirm(const DimTable& table, const std::vector<DimSample>& samples) {
  for (const DimSample& s : samples) {
    Sizes sizes;
    for (std::size_t d = 0; d < table.dims.size(); ++d) sizes[table.dims[d].name] = s.sizes[d];
    const Graph made = retype(*samples[0].graph, table, sizes);
    for (ValueId v = 0; v < made.value_count(); ++v)
      if (made.values[v].type != s.graph->values[v].type)
        throw Obstacle{fmt::format("%{} is {} at {}, inference says {}", made.value_name(v), to_string(s.graph->values[v].type),
                                   to_string(sizes), to_string(made.values[v].type)),
                       false};
  }
}

}  // namespace

DimFindings find_rules(DimTable* table, const std::vector<DimSample>& samples) {
  table->entries.clear();
  try {
    std::vector<const Graph*> graphs;
    for (const DimSample& s : samples) graphs.push_back(s.graph);
    Comparer(table, samples).compare(graphs, "");
    confirm(*table, samples);
    return {true, false, ""};
  } catch (const Obstacle& obstacle) {
    table->entries.clear();
    return {false, obstacle.more, obstacle.why};
  } catch (const TypeError& error) {
    table->entries.clear();
    return {false, false, error.what()};
  }
}

}  // namespace tapedeck
