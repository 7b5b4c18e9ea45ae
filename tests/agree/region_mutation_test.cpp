// Changes one thing at a time in nodes with regions: the type of an operand, one attribute, the type of one parameter or result
// of a region, or one count. Inference must refuse the node with a TypeError, or the node must do what it says: its graph
// verifies, its text says the same, its plan is sound, and an eager run and a replay under poison give the same bits.
// op_mutation_test.cpp does the same for ops without regions.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/attrs/control.h>

#include <tapedeck/tests/capture/replay_check.h>

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::testing::region_mutation_test {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max(),
                       kSmallest = std::numeric_limits<std::int64_t>::min();

// ---- the nodes before they are changed: the last node of each graph, whose operands are inputs of the graph ----

constexpr const char* kNodes[] = {
    R"(graph while_with_a_stack(%c: f32[3], %k: f32[3]) {
      %n: i64[], %c2: f32[3], %ys: f32[4,2] = while(%c, %k) {carried=1, trips=4} (%i: i64[], %a: f32[3], %b: f32[3]) {
        %three: i64[] = full() {shape=[], dtype=i64, value=3.0}
        %go: bool[] = less(%i, %three)
        return %go
      } (%i: i64[], %a: f32[3], %b: f32[3]) {
        %s: f32[3] = add(%a, %b)
        %y: f32[2] = slice(%s) {starts=[0], stops=[2]}
        return %s, %y
      }
      return %n, %c2, %ys
    })",
    R"(graph scan_with_everything(%c: f32[2], %d: i32[], %x: f32[3,2], %u: f64[3], %k: f32[2]) {
      %c2: f32[2], %d2: i32[], %ys: f32[3,2], %zs: f64[3] = scan(%c, %d, %x, %u, %k) {carried=2, scanned=2, reverse=true}
          (%i: i64[], %a: f32[2], %e: i32[], %r: f32[2], %v: f64[], %b: f32[2]) {
        %s: f32[2] = mul(%a, %r)
        %t: f32[2] = add(%s, %b)
        %f: i32[] = add(%e, %e)
        %w: f64[] = exp(%v)
        return %t, %f, %s, %w
      }
      return %c2, %d2, %ys, %zs
    })",
    R"(graph map_of_rows(%x: f32[3,4]) {
      %ys: f32[3,4], %q: f32[3] = scan(%x) {carried=0, scanned=1} (%i: i64[], %r: f32[4]) {
        %s: f32[4] = softmax(%r) {axis=0}
        %t: f32[] = sum(%r) {axes=[0]}
        return %s, %t
      }
      return %ys, %q
    })",
    R"(graph repeat_with_residuals(%c: f32[2]) {
      %c2: f32[2], %kept: f32[3,2] = scan(%c) {carried=1, trips=3, residuals=1} (%i: i64[], %a: f32[2]) {
        %b: f32[2] = sin(%a)
        return %b, %a
      }
      return %c2, %kept
    })",
    R"(graph branch(%p: bool[], %x: f32[4], %y: f32[4]) {
      %a: f32[4], %b: f32[2,2] = cond(%p, %x, %y) (%u: f32[4], %v: f32[4]) {
        %s: f32[4] = add(%u, %v)
        %t: f32[2,2] = reshape(%s) {shape=[2,2]}
        return %s, %t
      } (%u: f32[4], %v: f32[4]) {
        %t: f32[2,2] = reshape(%v) {shape=[2,2]}
        return %u, %t
      }
      return %a, %b
    })",
    R"(graph branch_in_a_scan(%c: f32[2], %x: bool[3]) {
      %c2: f32[2] = scan(%c, %x) {carried=1, scanned=1} (%i: i64[], %a: f32[2], %p: bool[]) {
        %b: f32[2] = cond(%p, %a) (%u: f32[2]) {
          %s: f32[2] = exp(%u)
          return %s
        } (%u: f32[2]) {
          return %u
        }
        return %b
      }
      return %c2
    })",
    R"(graph sizes_of_a_run(%x: f32[4,2]) {
      %y: f32[8] = dynamic(%x) {follows="y.shape.0=e@0"} (%a: f32[4,2]) {
        %e: f32[8] = reshape(%a) {shape=[8]}
        %y: f32[8] = reshape(%e) {shape=[8]}
        return %y
      }
      return %y
    })",
    R"(graph gradient_of_a_repeat(%n: i64[], %c: f32[2], %k: f32[3], %dc: f32[2], %dk: f32[3]) {
      %gc: f32[2], %gk: f32[3] = loop_grad(%n, %c, %k, %dc, %dk) {carried=1, trips=4, checkpoint=2, needs="12"}
          (%i: i64[], %a: f32[2], %b: f32[3]) {
        %s: f32[2] = sin(%a)
        return %s
      } (%i: i64[], %a: f32[2], %b: f32[3], %da: f32[2], %db: f32[3]) {
        %e: f32[2] = cos(%a)
        %f: f32[2] = mul(%e, %da)
        %g: f32[3] = add(%db, %b)
        return %f, %g
      }
      return %gc, %gk
    })",
    R"(graph gradient_of_a_scan(%n: i64[], %c: f32[2], %j: i32[], %x: f32[3,2], %k: f32[2], %dc: f32[2], %dk: f32[2], %dy: f32[3,2]) {
      %gc: f32[2], %gk: f32[2], %gx: f32[3,2] = loop_grad(%n, %c, %j, %x, %k, %dc, %dk, %dy)
          {carried=2, scanned=1, reverse=true, checkpoint=-1, needs="1011"}
          (%i: i64[], %a: f32[2], %m: i32[], %r: f32[2], %b: f32[2]) {
        %s: f32[2] = mul(%a, %r)
        %t: f32[2] = add(%s, %b)
        %o: i32[] = add(%m, %m)
        return %t, %o, %s
      } (%i: i64[], %a: f32[2], %m: i32[], %r: f32[2], %b: f32[2], %da: f32[2], %db: f32[2], %dy: f32[2]) {
        %d: f32[2] = add(%da, %dy)
        %f: f32[2] = mul(%d, %r)
        %g: f32[2] = add(%db, %da)
        %h: f32[2] = mul(%d, %a)
        return %f, %g, %h
      }
      return %gc, %gk, %gx
    })",
    R"(graph gradient_with_snapshots(%n: i64[], %c: f32[2], %dc: f32[2]) {
      %gc: f32[2] = loop_grad(%n, %c, %dc) {carried=1, trips=9, checkpoint=-2, needs="1"} (%i: i64[], %a: f32[2]) {
        %s: f32[2] = sin(%a)
        return %s
      } (%i: i64[], %a: f32[2], %da: f32[2]) {
        %e: f32[2] = cos(%a)
        %f: f32[2] = mul(%e, %da)
        return %f
      }
      return %gc
    })",
};

struct Mutant {
  const Op* op = nullptr;
  std::string name, change;
  std::vector<Type> operands;
  std::vector<unsigned char> attributes;
  std::vector<Graph> regions;

  const void* attrs() const { return attributes.empty() ? nullptr : attributes.data(); }
  std::string text() const { return name + ": " + change; }
};

Mutant node_of(const char* text) {
  const Graph g = parse(text, "node");
  const Node& node = g.nodes.back();
  Mutant m;
  m.op = node.op;
  m.name = g.name.str();
  m.operands = g.input_types(node);
  if (node.attrs != kNone) {
    const auto* from = static_cast<const unsigned char*>(g.attributes(node));
    m.attributes.assign(from, from + node.op->attrs->size);
  }
  for (const Region& region : g.regions_of(node)) m.regions.push_back(*region);
  return m;
}

// ---- the changes ----

using Take = std::function<void(Mutant)>;

bool legal(const Type& t) { return checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) >= 0; }

std::vector<std::int64_t> other_numbers(std::int64_t v) {
  std::vector<std::int64_t> all{0,         1,         -1,       v + (v < kLargest), v - (v > kSmallest), std::int64_t{1} << 31,
                                1LL << 32, 1LL << 46, kLargest, kSmallest,          (1LL << 62) + 1};
  std::erase(all, v);
  return all;
}

std::vector<Type> other_types(const Type& type) {
  std::vector<Type> all;
  for (const DType d : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean})
    if (d != type.dtype) all.push_back({d, type.shape});
  for (int d = 0; d < type.shape.rank; ++d)
    for (const std::int64_t size : other_numbers(type.shape[d])) {
      all.push_back(type);
      all.back().shape.sizes[d] = size;
    }
  for (const std::int64_t size : {0, 1, 2}) {
    all.push_back(type);
    all.back().shape.sizes[all.back().shape.rank++] = size;
  }
  if (type.shape.rank > 0) {
    all.push_back(type);
    --all.back().shape.rank;
  }
  std::erase_if(all, [](const Type& t) { return !legal(t); });
  return all;
}

void change_operands(const Mutant& from, const Take& take) {
  for (std::size_t i = 0; i < from.operands.size(); ++i) {
    for (const Type& type : other_types(from.operands[i])) {
      Mutant m = from;
      m.operands[i] = type;
      m.change = fmt::format("operand {} is {}", i, to_string(type));
      take(std::move(m));
    }
    Mutant less = from;
    less.operands.erase(less.operands.begin() + static_cast<std::ptrdiff_t>(i));
    less.change = fmt::format("operand {} is missing", i);
    take(std::move(less));
    Mutant more = from;
    more.operands.insert(more.operands.begin() + static_cast<std::ptrdiff_t>(i), from.operands[i]);
    more.change = fmt::format("operand {} stands there twice", i);
    take(std::move(more));
  }
}

template <class T>
void change_field(const Mutant& from, const Field& field, const std::vector<T>& values, const std::string& shown,
                  const Take& take) {
  for (const T& value : values) {
    Mutant m = from;
    std::memcpy(m.attributes.data() + field.offset, &value, sizeof value);
    m.change = fmt::format("the attribute {} is not {}", field.name, shown);
    if constexpr (std::is_arithmetic_v<T>) m.change += fmt::format(" but {}", value);
    take(std::move(m));
  }
}

std::vector<Name> other_texts(const std::string& text) {
  std::vector<Name> all{Name(""), Name(text + "0"), Name(text + "1"), Name("x")};
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char c : {'0', '1', '2', '3', ','})
      if (text[i] != c) all.push_back(Name(std::string(text).replace(i, 1, 1, c)));
  if (!text.empty()) all.push_back(Name(text.substr(1)));
  return all;
}

void change_attributes(const Mutant& from, const Take& take) {
  if (from.attributes.empty()) return;
  for (const Field& field : fields_of(*from.op)) {
    if (field.kind == FieldKind::integer) {
      const auto number = field_of<std::int64_t>(from.attrs(), field);
      change_field<std::int64_t>(from, field, other_numbers(number), fmt::format("{}", number), take);
    }
    if (field.kind == FieldKind::boolean) {
      const bool flag = field_of<bool>(from.attrs(), field);
      change_field<unsigned char>(from, field, {static_cast<unsigned char>(!flag)}, fmt::format("{}", flag), take);
    }
    if (field.kind == FieldKind::string) {
      const std::string text = field_of<Name>(from.attrs(), field).str();
      change_field<Name>(from, field, other_texts(text), text, take);
    }
  }
}

// The region with other parameters: without a type, a parameter is left out. Nothing if a node of the region then does not
// infer, because verify() refuses such a region.
std::optional<Graph> with_parameters(const Graph& from, const std::vector<std::optional<Type>>& parameters) {
  Graph to;
  to.name = from.name;
  to.constants = from.constants;
  std::vector<ValueId> at(from.values.size(), kNone);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i]) continue;
    const bool old = i < static_cast<std::size_t>(from.n_inputs);
    const ValueId v = to.add_input(old ? from.values[i].name : Name(fmt::format("more{}", i)), *parameters[i]);
    if (old) at[i] = v;
  }
  for (const Node& node : from.nodes) {
    std::vector<ValueId> operands;
    std::vector<Type> types, outputs = from.output_types(node);
    for (const ValueId v : from.inputs(node)) {
      if (at[v] == kNone) return {};
      operands.push_back(at[v]);
      types.push_back(to.values[at[v]].type);
    }
    try {
      infer_types(*node.op, types, from.attributes(node), outputs, from.regions_of(node));
    } catch (const TypeError&) {
      return {};
    }
    const NodeId n = to.add_node(*node.op, operands, from.attributes(node), outputs, node.origin, {}, from.regions_of(node));
    for (std::int32_t k = 0; k < node.n_outputs; ++k) {
      at[node.first_output + k] = to.nodes[n].first_output + k;
      to.values[at[node.first_output + k]].name = from.values[node.first_output + k].name;
    }
  }
  for (const ValueId v : from.outputs) {
    if (at[v] == kNone) return {};
    to.outputs.push_back(at[v]);
  }
  to.output_names.resize(to.outputs.size());
  return to;
}

std::vector<std::optional<Type>> parameters_of(const Graph& region) {
  std::vector<std::optional<Type>> types;
  for (ValueId v = 0; v < region.n_inputs; ++v) types.emplace_back(region.values[v].type);
  return types;
}

void change_parameters(const Mutant& from, std::size_t r, const Take& take) {
  const auto changed = [&](const std::vector<std::optional<Type>>& parameters, const std::string& what) {
    std::optional<Graph> region = with_parameters(from.regions[r], parameters);
    if (!region) return;
    Mutant m = from;
    m.regions[r] = std::move(*region);
    m.change = fmt::format("region {}: {}", r, what);
    take(std::move(m));
  };
  const auto own = parameters_of(from.regions[r]);
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (const Type& type : other_types(*own[i])) {
      auto other = own;
      other[i] = type;
      changed(other, fmt::format("parameter {} is {}", i, to_string(type)));
    }
    auto less = own;
    less[i].reset();
    changed(less, fmt::format("parameter {} is missing", i));
  }
  auto more = own;
  more.push_back(Type{DType::f32, Shape{2}});
  changed(more, "there is one more parameter");
}

void change_results(const Mutant& from, std::size_t r, const Take& take) {
  const auto changed = [&](const std::vector<ValueId>& outputs, const std::string& what) {
    Mutant m = from;
    m.regions[r].outputs = outputs;
    m.regions[r].output_names.assign(outputs.size(), Name());
    m.change = fmt::format("region {}: {}", r, what);
    take(std::move(m));
  };
  const std::vector<ValueId>& own = from.regions[r].outputs;
  for (std::size_t i = 0; i <= own.size(); ++i)
    for (ValueId v = 0; v < from.regions[r].value_count(); ++v) {
      auto other = own, more = own;
      more.insert(more.begin() + static_cast<std::ptrdiff_t>(i), v);
      changed(more, fmt::format("value {} is a further result {}", v, i));
      if (i == own.size() || other[i] == v) continue;
      other[i] = v;
      changed(other, fmt::format("value {} is result {}", v, i));
    }
  for (std::size_t i = 0; i < own.size(); ++i) {
    auto less = own;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    changed(less, fmt::format("result {} is missing", i));
  }
}

void change_regions(const Mutant& from, const Take& take) {
  for (std::size_t r = 0; r < from.regions.size(); ++r) {
    change_parameters(from, r, take);
    change_results(from, r, take);
    Mutant less = from;
    less.regions.erase(less.regions.begin() + static_cast<std::ptrdiff_t>(r));
    less.change = fmt::format("region {} is missing", r);
    take(std::move(less));
    Mutant more = from;
    more.regions.push_back(from.regions[r]);
    more.change = fmt::format("region {} stands there twice", r);
    take(std::move(more));
    Mutant turned = from;
    std::swap(turned.regions.front(), turned.regions[r]);
    turned.change = fmt::format("regions 0 and {} are swapped", r);
    if (r > 0) take(std::move(turned));
  }
}

// ---- the checks ----

std::vector<Region> shared(const std::vector<Graph>& regions) {
  std::vector<Region> all;
  for (const Graph& g : regions) all.push_back(std::make_shared<const Graph>(g));
  return all;
}

Graph graph_of(const Mutant& m, const std::vector<Type>& outputs) {
  Graph g;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < m.operands.size(); ++i) inputs.push_back(g.add_input(Name(fmt::format("x{}", i)), m.operands[i]));
  const NodeId n = g.add_node(*m.op, inputs, m.attrs(), outputs, {}, {}, shared(m.regions));
  for (std::int32_t k = 0; k < g.nodes[n].n_outputs; ++k) g.outputs.push_back(g.nodes[n].first_output + k);
  g.output_names.resize(g.outputs.size());
  return g;
}

// The results of one way to run the node, or the text of its error without the place.
struct Outcome {
  std::vector<Tensor> results;
  bool failed = false;
};
template <class F>
Outcome outcome(F&& f) {
  try {
    return {f(), false};
  } catch (const ExecutionError&) {
    return {{}, true};
  } catch (const TypeError&) {  // a dynamic region finds other sizes than it was recorded with
    return {{}, true};
  }
}

// A number of passes, a predicate: whatever is a single integer or flag takes several values.
std::vector<Tensor> operands_of(const Mutant& m, std::int64_t number) {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < m.operands.size(); ++i) {
    const Type& t = m.operands[i];
    const bool count = t.shape.rank == 0 && !is_floating(t.dtype);
    all.push_back(count ? full({}, static_cast<double>(number), t.dtype) : default_value(t, 3, fmt::format("x{}", i)));
  }
  return all;
}

void check_runs(const Mutant& m, const Graph& g, const Plan& plan) {
  for (const std::int64_t number : {3, 0, 1, 100, -1}) {
    const std::vector<Tensor> operands = operands_of(m, number);
    const Outcome eager = outcome([&] { return run_eagerly(g, operands, {}).outputs; });
    const Outcome replayed = outcome([&] {
      Executor executor(plan, {.threads = 1});
      for (std::size_t i = 0; i < operands.size(); ++i) executor.set_input(static_cast<int>(i), operands[i]);
      executor.run();
      return executor.outputs();
    });
    ASSERT_EQ(eager.failed, replayed.failed) << m.text() << ", number " << number << "\n" << print(g);
    ASSERT_EQ(eager.results.size(), replayed.results.size());
    for (std::size_t k = 0; k < eager.results.size(); ++k)
      EXPECT_TRUE(bit_equal(eager.results[k], replayed.results[k]))
          << m.text() << ", result " << k << ", number " << number << "\n"
          << print(g);
  }
}

// Whether a run is short: few bytes, and a bound on the number of passes.
bool small(const Mutant& m, const Plan& plan) {
  if (plan.peak_bytes > 1 << 16) return false;
  if (m.attributes.empty()) return true;
  for (const Field& field : fields_of(*m.op))
    if (std::string_view(field.name) == "trips" && field_of<std::int64_t>(m.attrs(), field) > 1000) return false;
  return true;
}

struct Counts {
  int refused = 0, no_plan = 0, large = 0, run = 0;
};

void check(const Mutant& m, Counts* counts) {
  std::vector<Type> outputs;
  const std::vector<Region> regions = shared(m.regions);
  try {
    infer_types(*m.op, m.operands, m.attrs(), outputs, regions);
  } catch (const TypeError&) {
    ++counts->refused;
    return;
  }
  for (const Type& t : outputs) ASSERT_TRUE(legal(t)) << m.text();
  const Graph g = graph_of(m, outputs);
  ASSERT_NO_THROW(verify(g)) << m.text();
  ASSERT_EQ(print(parse(print(g), "again")), print(g)) << m.text();
  std::optional<Plan> plan;
  try {
    plan = make_plan(g);
  } catch (const InvalidGraphError& error) {  // a tape that no memory holds
    EXPECT_NE(std::string(error.what()).find("2^50"), std::string::npos) << m.text() << ": " << error.what();
    ++counts->no_plan;
    return;
  }
  ASSERT_EQ(check_plan(*plan), std::vector<std::string>()) << m.text() << "\n" << print(g);
  if (!small(m, *plan)) {
    ++counts->large;
    return;
  }
  ++counts->run;
  check_runs(m, g, *plan);
}

// A result of the node that is not what the op gives.
void check_wrong_results(const Mutant& m) {
  std::vector<Type> right;
  infer_types(*m.op, m.operands, m.attrs(), right, shared(m.regions));
  for (std::size_t k = 0; k < right.size(); ++k)
    for (const Type& type : other_types(right[k])) {
      std::vector<Type> wrong = right;
      wrong[k] = type;
      EXPECT_THROW(verify(graph_of(m, wrong)), InvalidGraphError) << m.name << ": result " << k << " is " << to_string(type);
    }
  EXPECT_THROW(verify(graph_of(m, std::vector<Type>(right.begin(), right.end() - 1))), InvalidGraphError) << m.name;
  right.push_back(right[0]);
  EXPECT_THROW(verify(graph_of(m, right)), InvalidGraphError) << m.name;
}

class RegionMutation : public ::testing::TestWithParam<const char*> {};

TEST_P(RegionMutation, IsRefusedOrRunsAsItSays) {
  Settings poisoned = settings();
  poisoned.poison = 1;
  const ScopedSettings scope(poisoned);
  const NoGrad no_grad;
  Counts counts;
  const Mutant from = node_of(GetParam());
  const Take take = [&](const Mutant& m) {
    try {
      check(m, &counts);
    } catch (const std::exception& error) {
      ADD_FAILURE() << m.text() << " throws " << error.what();
    }
  };
  take(from);
  ASSERT_EQ(counts.run, 1) << "the node as it is";
  change_operands(from, take);
  change_attributes(from, take);
  change_regions(from, take);
  check_wrong_results(from);
  fmt::print("{}: {} refused, {} without a plan, {} large, {} run\n", from.name, counts.refused, counts.no_plan, counts.large,
             counts.run);
  EXPECT_GT(counts.refused, 50);
  EXPECT_GT(counts.run, 1);
}

INSTANTIATE_TEST_SUITE_P(Nodes, RegionMutation, ::testing::ValuesIn(kNodes));

}  // namespace
}  // namespace tapedeck::testing::region_mutation_test
