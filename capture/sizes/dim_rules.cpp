// Numbers that differ between recordings at different sizes become rules of a DimTable. Comparer walks the recordings side by
// side; Solver finds the one function of the dimensions that explains a number at every recorded size.
//
//     b = 4    %h: f32[40] = reshape(%x) {shape=[40]}
//     b = 6    %h: f32[60] = reshape(%x) {shape=[60]}          h.shape.0 = 10*b
#include <tapedeck/capture/sizes/dim_rules.h>

#include <tapedeck/capture/analysis/same_program.h>
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

// A reason why no rule is found; `more` as in DimFindings.
struct Obstacle {
  std::string why;
  bool more = false;
};

using Monomial = std::vector<std::int32_t>;  // the dims that are multiplied; none: 1

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

  // `counts`: lists of whole numbers by sample; a number may be n / (n - 1) of one of them.
  DimRule real_rule(const std::vector<double>& values, const std::vector<std::vector<std::int64_t>>& counts,
                    const std::string& what) const {
    for (const auto& n : counts)
      if (const auto rule = unbiased(n, values, what)) return *rule;
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

  // The one candidate of a kind that fits. Throws if several candidates fit, or if no recording is left to confirm the
  // candidate.
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

  // Coefficients of one or two monomials that explain every value exactly.
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

  // c / m or c * m with the same bits at every sample. Plain numbers are tried for c first.
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

  // n / max(n - 1, 1) with the same bits at every sample.
  std::optional<DimRule> unbiased(const std::vector<std::int64_t>& n, const std::vector<double>& values,
                                  const std::string& what) const {
    DimRule rule;
    rule.kind = DimRule::Kind::unbiased;
    for (const bool single : {false, true}) {
      bool same = true;
      for (std::size_t i = 0; i < n.size() && same; ++i) {
        rule.terms = {{n[i], {}}};
        rule.single = single;
        same = same_bits_at(rule, i, values);
      }
      if (!same) continue;
      const DimRule size = size_rule(n, what);
      rule.terms = size.terms;
      rule.divisor = size.divisor;
      return rule;
    }
    return std::nullopt;
  }

  bool same_bits_at(const DimRule& rule, std::size_t sample, const std::vector<double>& values) const {
    const double value = scale_at(rule, sizes_[sample]);
    return std::memcmp(&value, &values[sample], sizeof value) == 0;
  }

  bool same_bits(const DimRule& rule, const std::vector<double>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!same_bits_at(rule, i, values)) return false;
    return true;
  }

  std::vector<std::vector<std::int64_t>> sizes_;  // by sample
  std::size_t n_distinct_ = 0;
  std::vector<std::int32_t> varied_;
  std::vector<Monomial> single_, products_;
};

// ---- the recordings side by side ----

// Explains each difference in sizes and numbers that same_program() finds by a rule, and throws an Obstacle if it cannot. Types
// that follow from these by inference, and names of results, need no rule.
class Comparer {
 public:
  Comparer(DimTable* table, const std::vector<DimSample>& samples) : table_(*table), solver_(samples) {}

  // `path`: the nodes and regions around the graphs, in the words of DimTable::Entry.
  void compare(const std::vector<const Graph*>& graphs, const std::string& path) {
    same_program(graphs, [&](const ProgramDifference& d) {
      explain(d, path);
      return true;
    });
  }

 private:
  using Kind = ProgramDifference::Kind;

  [[noreturn]] static void different(const std::string& why) { throw Obstacle{why, false}; }

  void explain(const ProgramDifference& d, const std::string& path) {
    const bool of_node = d.first().id != kNone;
    name_ = of_node && d.first().node().n_outputs > 0 ? path + first_result(d) : "";
    switch (d.kind) {
      case Kind::node_count:
        different(fmt::format("{} nodes were recorded at one size, {} at another", d.first().graph->node_count(),
                              d.second().graph->node_count()));
      case Kind::inputs:
      case Kind::state:
      case Kind::outputs:
        different("inputs, state or results are others at another size");
      case Kind::updates:
        different("updates are others at another size");
      case Kind::op:
      case Kind::operand_count:
      case Kind::result_count:
      case Kind::operand:
        other_node(d);
      case Kind::literal:
        return explain_literal(d);
      case Kind::field:
        return explain_field(d);
      case Kind::region:
        return explain_region(d, path);
      case Kind::result_type:
        return explain_declared_type(d);
      case Kind::operand_type:
      case Kind::output_names:
        return;
    }
  }

  static std::string first_result(const ProgramDifference& d) {
    return d.first().graph->value_name(d.first().node().first_output);
  }

  [[noreturn]] static void other_node(const ProgramDifference& d) {
    const ProgramSide &first = d.first(), &second = d.second();
    different(fmt::format("node {} was `{}` at one size and `{}` at another ({})", first.id, first.graph->node_text(first.id),
                          second.graph->node_text(second.id), first.node().origin.site.view()));
  }

  static std::string what(const ProgramDifference& d, const std::string& field) {
    const ProgramSide& first = d.first();
    return fmt::format("'{}' of `{}` ({})", field, first.graph->node_text(first.id), first.node().origin.site.view());
  }

  void add(const ProgramDifference& d, const std::string& field, std::int32_t element, DimRule rule) {
    if (name_.empty() || name_.find_first_of(",=@") != name_.npos)
      different(fmt::format("the attribute {} changes, and its node has no name to speak of it by", what(d, field)));
    table_.entries.push_back({name_, field, element, std::move(rule)});
  }

  template <class Get>
  void explain_sizes(const ProgramDifference& d, const std::string& field, std::int32_t element, Get get) {
    std::vector<std::int64_t> values;
    for (const ProgramSide& side : d.sides) values.push_back(get(side));
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == values[0]; })) return;
    add(d, field, element, solver_.size_rule(values, what(d, field)));
  }

  void explain_reals(const ProgramDifference& d, const std::string& field, const std::vector<double>& values,
                     const std::vector<std::vector<std::int64_t>>& counts = {}) {
    add(d, field, -1, solver_.real_rule(values, counts, what(d, field)));
  }

  void explain_field(const ProgramDifference& d) {
    if (!d.field) other_node(d);
    const Field& field = *d.field;
    const auto at = [](const ProgramSide& side) { return side.graph->attributes(side.node()); };
    switch (field.kind) {
      case FieldKind::integer:
        return explain_sizes(d, field.name, -1,
                             [&](const ProgramSide& side) { return field_of<std::int64_t>(at(side), field); });
      case FieldKind::ints: {
        const std::int32_t size = field_of<Ints>(at(d.first()), field).size;
        for (const ProgramSide& side : d.sides)
          if (field_of<Ints>(at(side), field).size != size)
            different(what(d, field.name) + " has another length at another size");
        for (std::int32_t i = 0; i < size; ++i)
          explain_sizes(d, field.name, i, [&](const ProgramSide& side) { return field_of<Ints>(at(side), field)[i]; });
        return;
      }
      case FieldKind::real: {
        std::vector<double> values;
        for (const ProgramSide& side : d.sides) values.push_back(field_of<double>(at(side), field));
        return explain_reals(d, field.name, values);
      }
      case FieldKind::boolean:
      case FieldKind::dtype:
      case FieldKind::string:
      case FieldKind::tensor:
        different(what(d, field.name) + " is another at another size");
    }
  }

  void explain_region(const ProgramDifference& d, const std::string& path) {
    std::vector<const Graph*> regions;
    for (const ProgramSide& side : d.sides) regions.push_back(side.graph->regions_of(side.node())[d.index].get());
    const bool named = d.first().node().n_outputs > 0;
    compare(regions, named ? fmt::format("{}{}/{}/", path, first_result(d), d.index) : path);
  }

  // Inference gives the types of most results. A declared type is like an attribute.
  void explain_declared_type(const ProgramDifference& d) {
    if (!d.first().node().op->is(kDeclaredTypes) || d.first().graph->literal(d.first().node()) || d.index > 9) return;
    const auto shape = [&](const ProgramSide& side) -> const Shape& {
      return side.graph->output_values(side.node())[d.index].type.shape;
    };
    for (const ProgramSide& side : d.sides)
      if (shape(side).rank != shape(d.first()).rank) different(what(d, "type") + " has another rank at another size");
    for (std::int32_t axis = 0; axis < shape(d.first()).rank; ++axis)
      explain_sizes(d, fmt::format("type{}", d.index), axis, [&](const ProgramSide& side) { return shape(side)[axis]; });
  }

  // Recorded constants must be the same. One exception: a single floating number may follow a dimension (the 1/n of a mean).
  void explain_literal(const ProgramDifference& d) {
    const auto literal = [](const ProgramSide& side) -> const Literal& { return *side.graph->literal(side.node()); };
    const Literal& first = literal(d.first());
    const std::string_view site = d.first().node().origin.site.view();
    for (const ProgramSide& side : d.sides)
      if (first.type != literal(side).type)
        different(fmt::format(
            "the constant %{}: {} is baked in as {} at another size ({}); compute it inside the step, or pass it as an input",
            first_result(d), to_string(first.type), to_string(literal(side).type), site));
    std::vector<double> values;
    for (const ProgramSide& side : d.sides) {
      const Literal& q = literal(side);
      if (q.type.numel() != 1 || !q.data || (q.type.dtype != DType::f32 && q.type.dtype != DType::f64))
        different(
            fmt::format("the constant %{}: {} differs between sizes ({}); compute it inside the step, or pass it as an input",
                        first_result(d), to_string(first.type), site));
      values.push_back(q.type.dtype == DType::f32 ? static_cast<double>(*static_cast<const float*>(q.data.get()))
                                                  : *static_cast<const double*>(q.data.get()));
    }
    explain_reals(d, tensor_field(*d.first().node().op)->name, values, element_counts(d));
  }

  // For a constant c in mul(%y, c): the numbers of elements of which one element of %y was computed, by operand of the node
  // that made %y, and for each of them by sample.
  static std::vector<std::vector<std::int64_t>> element_counts(const ProgramDifference& d) {
    std::vector<std::vector<std::int64_t>> counts;
    const Graph& g = *d.first().graph;
    const ValueId c = d.first().node().first_output;
    for (const Node& reader : g.nodes) {
      const auto operands = g.inputs(reader);
      if (std::find(operands.begin(), operands.end(), c) == operands.end()) continue;
      for (const ValueId operand : operands) {
        const ValueId y = computed(g, operand);
        if (g.values[y].node == kNone) continue;
        for (const ValueId x : g.inputs(g.nodes[g.values[y].node])) add_count(d, x, y, &counts);
      }
    }
    return counts;
  }

  // The value that v shows, through views and the like: nodes of one operand that has as many elements.
  static ValueId computed(const Graph& g, ValueId v) {
    for (NodeId n = g.values[v].node; n != kNone && g.nodes[n].n_inputs == 1; n = g.values[v].node) {
      const ValueId operand = g.inputs(g.nodes[n])[0];
      if (g.values[operand].type.shape.numel() != g.values[v].type.shape.numel()) break;
      v = operand;
    }
    return v;
  }

  static void add_count(const ProgramDifference& d, ValueId x, ValueId y, std::vector<std::vector<std::int64_t>>* counts) {
    std::vector<std::int64_t> n;
    for (const ProgramSide& side : d.sides) {  // values have the same numbers in every sample
      const std::int64_t elements = side.graph->values[x].type.shape.numel(),
                         results = side.graph->values[y].type.shape.numel();
      if (results == 0 || elements % results != 0) return;
      n.push_back(elements / results);
    }
    counts->push_back(std::move(n));
  }

  DimTable& table_;
  Solver solver_;
  std::string name_;  // of the node that is compared now, in the words of DimTable::Entry
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
