// Algebra: identities (identities.h) that make a value or a cheaper node of a few nodes. By default only identities that change
// no bit.
//     %a = neg(%x); %b = neg(%a); %c = mul(%b, %one); %d = add(%c, %y)      becomes      %a = neg(%x); %d = add(%x, %y)
// With fast_math also identities that change rounding, or the results for NaN, infinities and -0:
//     %a = exp(%x); %b = log(%a)      becomes      %a = exp(%x); and %x for %b
// Leaves alone: clones, and patterns that go through clones; nodes with order edges. Leaves dead nodes behind for dead_code.
// The result of a rewrite is rewritten at once in the same walk, so the pass is idempotent. Cost: O(nodes * identities of an
// op).
#include <tapedeck/capture/passes/marks.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/pattern.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/passes/uniform_values.h>
#include <tapedeck/engine/ir/compare_nodes.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace tapedeck {

namespace {

// The rules by the id of the op that stands at the root of their left side.
using RulesByOp = std::vector<std::vector<const Rule*>>;

RulesByOp index_rules(bool fast_math) {
  static const std::vector<Rule> exact = parse_rules(exact_identities()), fast = parse_rules(fast_identities());
  RulesByOp by_op;
  for (const std::vector<Rule>* rules : {&exact, &fast}) {
    if (rules == &fast && !fast_math) continue;
    for (const Rule& rule : *rules) {
      by_op.resize(std::max(by_op.size(), static_cast<std::size_t>(rule.from.op->id) + 1));
      by_op[rule.from.op->id].push_back(&rule);
    }
  }
  return by_op;
}

bool holds_for(Numbers of, DType dtype) {
  switch (of) {
    case Numbers::floating:
      return is_floating(dtype);
    case Numbers::whole:
      return !is_floating(dtype) && dtype != DType::boolean;
    case Numbers::boolean:
      return dtype == DType::boolean;
    case Numbers::arithmetic:
      return dtype != DType::boolean;
    case Numbers::any:
      return true;
  }
  return false;
}

// A node about to be made.
struct Application {
  const Op* op = nullptr;
  std::vector<ValueId> operands;  // of the new graph
  const void* attrs = nullptr;
  Type type;
};

using AttributeBytes = std::vector<std::max_align_t>;

struct Match {
  std::array<ValueId, 128> values;                               // by variable
  std::vector<std::pair<const Op*, AttributeBytes>> attributes;  // of the nodes on the left that have any
  Match() { values.fill(kNone); }
};

bool states(const Pattern& p, std::string_view attribute) {
  for (const auto& [name, value] : p.attributes)
    if (name == attribute) return true;
  for (const Pattern& operand : p.operands)
    if (states(operand, attribute)) return true;
  return false;
}

const Field* find_field(const Op& op, const Field& like) {
  for (const Field& field : fields_of(op))
    if (std::string_view(field.name) == like.name && field.kind == like.kind) return &field;
  return nullptr;
}

std::span<const Rule* const> rules_of(const RulesByOp& rules, const Op& op) {
  return static_cast<std::size_t>(op.id) < rules.size() ? std::span<const Rule* const>(rules[op.id])
                                                        : std::span<const Rule* const>();
}

// Whether the pass looks at the node at all.
bool may_go(const Node& node) { return !node.origin.clone && node.n_after == 0 && node.n_outputs == 1; }

// Whether the left side of an identity stands in a graph, which may grow meanwhile.
class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), uniform_(graph) {}

  bool applies(const Rule& rule, const Op& op, std::span<const ValueId> operands, const void* attrs, Match& match) {
    if (!matches_application(rule.from, op, operands, attrs, match)) return false;
    const ValueId x = match.values['x'];
    if (!holds_for(rule.identity.of, graph_.values[x].type.dtype) || !carries_attributes(rule, match)) return false;
    // Known numbers are gathered behind a value that is not known; among known values the rewrite would never end.
    return match.values['k'] == kNone || !uniform_.of(x);
  }

 private:
  bool matches(const Pattern& p, ValueId v, Match& match) {
    switch (p.kind) {
      case Pattern::Kind::number: {
        const std::optional<double> known = uniform_.of(v);
        return known && *known == p.number && std::signbit(*known) == std::signbit(p.number);
      }
      case Pattern::Kind::number_variable:
        if (!uniform_.of(v)) return false;
        [[fallthrough]];
      case Pattern::Kind::value: {
        ValueId& bound = match.values[p.variable];
        if (bound == kNone) bound = v;
        return bound == v;
      }
      case Pattern::Kind::op:
        break;
    }
    if (graph_.values[v].node == kNone) return false;
    const Node& node = graph_.nodes[graph_.values[v].node];
    return node.op == p.op && !node.origin.clone && node.n_outputs == 1 &&
           matches_application(p, *node.op, graph_.inputs(node), graph_.attributes(node), match);
  }

  bool matches_application(const Pattern& p, const Op& op, std::span<const ValueId> operands, const void* attrs, Match& match) {
    if (&op != p.op || operands.size() != p.operands.size()) return false;
    if (attrs && !attributes_match(p, op, attrs)) return false;
    if (attrs) {
      AttributeBytes bytes(op.attrs->size / sizeof(std::max_align_t) + 1);
      std::memcpy(bytes.data(), attrs, op.attrs->size);
      match.attributes.emplace_back(&op, std::move(bytes));
    }
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!matches(p.operands[i], operands[i], match)) return false;
    return true;
  }

  // Attributes that the pattern states must have the stated values.
  static bool attributes_match(const Pattern& p, const Op& op, const void* attrs) {
    for (const auto& [name, value] : p.attributes)
      for (const Field& field : fields_of(op))
        if (name == field.name && field_of<std::int64_t>(attrs, field) != value) return false;
    return true;
  }

  // Any other attribute must also exist on the right side, or have its default value.
  static bool carries_attributes(const Rule& rule, const Match& match) {
    for (const auto& [op, attrs] : match.attributes)
      for (const Field& field : fields_of(*op)) {
        if (states(rule.from, field.name) || (rule.to.op && find_field(*rule.to.op, field))) continue;
        if (!same_field(attrs.data(), op->attrs->defaults, field)) return false;
      }
    return true;
  }

  const Graph& graph_;
  UniformValues uniform_;
};

// Most graphs have no match. The left side of the first match stands in the old graph, so one look at the old graph is enough.
bool may_rewrite(const Graph& graph, const RulesByOp& rules) {
  Matcher matcher(graph);
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const auto of_op = rules_of(rules, *node.op);
    return may_go(node) && std::any_of(of_op.begin(), of_op.end(), [&](const Rule* rule) {
             Match match;
             return matcher.applies(*rule, *node.op, graph.inputs(node), graph.attributes(node), match);
           });
  });
}

class Algebra {
 public:
  Algebra(const Graph& graph, const RulesByOp& rules)
      : from_(graph), rules_(rules), rewriter_(graph), to_(rewriter_.graph()), matcher_(to_) {}

  Graph run() {
    for (NodeId n = 0; n < from_.node_count(); ++n)
      if (!rewrite(n)) rewriter_.copy(n);
    return rewriter_.finish();
  }

 private:
  bool rewrite(NodeId n) {
    const Node& node = from_.nodes[n];
    if (!may_go(node) || rules_of(rules_, *node.op).empty()) return false;
    Application root{node.op, {}, from_.attributes(node), from_.values[node.first_output].type};
    for (ValueId v : from_.inputs(node)) root.operands.push_back(rewriter_.at(v));
    origin_ = node.origin;
    origin_.wish = NodeWish::none;  // it is for the result alone
    const NodeId first_new = to_.node_count();
    const ValueId v = simplified(root);
    if (v == kNone) return false;
    rewriter_.replace(node.first_output, v);
    hand_on_mark(node.origin.wish, v, &to_);
    if (to_.values[v].node >= first_new) to_.values[v].name = from_.values[node.first_output].name;
    return true;
  }

  // The value that identities have in place of the application; kNone if none applies. Identities are also tried on the
  // application that an identity makes, until none applies. Each may reach one node deeper into the graph, so this is a loop.
  ValueId simplified(Application root) {
    AttributeBytes attrs;  // of `root`, once an identity has made it
    for (bool is_made = false;; is_made = true) {
      Match match;
      const Rule* const rule = applicable(root, &match);
      if (!rule) return is_made ? add(root) : kNone;
      if (rule->to.kind != Pattern::Kind::op) return build(rule->to, match, root.type);
      Application made{rule->to.op, {}, nullptr, root.type};
      for (const Pattern& operand : rule->to.operands) made.operands.push_back(build(operand, match, root.type));
      attrs = attributes_for(*made.op, match);
      made.attrs = attrs.empty() ? nullptr : attrs.data();
      root = std::move(made);
    }
  }

  // The first identity that applies and whose right side has the type of the application; null if there is none.
  const Rule* applicable(const Application& root, Match* match) {
    for (const Rule* rule : rules_of(rules_, *root.op)) {
      *match = Match();
      if (!matcher_.applies(*rule, *root.op, root.operands, root.attrs, *match)) continue;
      const std::optional<Type> type = type_of(rule->to, *match, root.type);
      if (type && *type == root.type) return rule;
    }
    return nullptr;
  }

  // ---- building ----

  // The attributes of the op on the right side: its defaults, and for names that a node on the left has too, the values there.
  static AttributeBytes attributes_for(const Op& op, const Match& match) {
    AttributeBytes store(op.attrs ? op.attrs->size / sizeof(std::max_align_t) + 1 : 0);
    if (!op.attrs) return store;
    auto* bytes = reinterpret_cast<unsigned char*>(store.data());
    std::memcpy(bytes, op.attrs->defaults, op.attrs->size);
    for (const Field& field : fields_of(op))
      for (const auto& [left, attrs] : match.attributes)
        if (const Field* other = find_field(*left, field))
          std::memcpy(bytes + field.offset, reinterpret_cast<const unsigned char*>(attrs.data()) + other->offset,
                      field_bytes(field.kind));
    return store;
  }

  std::optional<Type> type_of(const Pattern& p, const Match& match, const Type& root) const {
    if (p.kind == Pattern::Kind::number) return root;
    if (p.kind != Pattern::Kind::op) return to_.values[match.values[p.variable]].type;
    std::vector<Type> inputs, outputs;
    for (const Pattern& operand : p.operands) {
      const std::optional<Type> type = type_of(operand, match, root);
      if (!type) return std::nullopt;
      inputs.push_back(*type);
    }
    const auto attrs = attributes_for(*p.op, match);
    try {
      infer_types(*p.op, inputs, attrs.empty() ? nullptr : attrs.data(), outputs);
    } catch (const TypeError&) {
      return std::nullopt;
    }
    return outputs.front();
  }

  ValueId build(const Pattern& p, const Match& match, const Type& root) {
    if (p.kind == Pattern::Kind::number) return add_full(p.number, root);
    if (p.kind != Pattern::Kind::op) return match.values[p.variable];
    const Type type = *type_of(p, match, root);
    Application made{p.op, {}, nullptr, type};
    for (const Pattern& operand : p.operands) made.operands.push_back(build(operand, match, root));
    const auto attrs = attributes_for(*p.op, match);
    made.attrs = attrs.empty() ? nullptr : attrs.data();
    const ValueId v = simplified(made);
    return v != kNone ? v : add(made);
  }

  ValueId add(const Application& made) {
    const Type types[] = {made.type};
    return to_.nodes[to_.add_node(*made.op, made.operands, made.attrs, types, origin_)].first_output;
  }

  ValueId add_full(double value, const Type& type) {
    FullAttrs attrs;
    for (std::int64_t s : type.shape) attrs.shape.push_back(s);
    attrs.dtype = type.dtype;
    attrs.value = value;
    const Type types[] = {type};
    return to_.nodes[to_.add_node(ops::full, {}, &attrs, types, origin_)].first_output;
  }

  const Graph& from_;
  const RulesByOp& rules_;
  Rewriter rewriter_;
  Graph& to_;
  Matcher matcher_;
  Origin origin_;  // of the node being rewritten
};

}  // namespace

Graph algebra(Graph graph, const PassOptions& options) {
  const RulesByOp rules = index_rules(options.fast_math);
  if (!may_rewrite(graph, rules)) return graph;
  return Algebra(graph, rules).run();
}

namespace {
const bool algebra_pass = register_pass({
    .name = "algebra",
    .aliases = {"simplify", "algebraic_simplification"},
    .doc = "applies identities such as x * 1 = x and -(-x) = x; with fast_math log(exp(x)) = x and more",
    .before = "graph g(%x: f32[4]) {\n  %one: f32[] = full() {shape=[], dtype=f32, value=1.0}\n  %a: f32[4] = mul(%x, %one)\n"
              "  %b: f32[4] = exp(%a)\n  return %b\n}\n",
    .after =
        "graph g(%x: f32[4]) {\n  _: f32[] = full() {shape=[], dtype=f32, value=1.0}\n  %b: f32[4] = exp(%x)\n  return %b\n}\n",
    .run = algebra,
});
}  // namespace

}  // namespace tapedeck
