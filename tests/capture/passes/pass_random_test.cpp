// Runs every pass on random programs. The graph before and the graph after the pass must give the same bits, node by node.
// The oracle is run_eagerly(), which uses no pass.
#include <tapedeck/capture/analysis/fusion.h>
#include <tapedeck/capture/analysis/reach.h>
#include <tapedeck/capture/passes/identities.h>
#include <tapedeck/capture/passes/pattern.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/passes/value_devices.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/replay/partition.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/passes/pass_graphs.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

namespace tapedeck {
namespace {

using test::expect_same_run;
using test::operands_of;
using test::PassProgram;

std::uint64_t first_seed() {
  const char* seed = std::getenv("TAPEDECK_TEST_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : 0;
}

// Every pass must keep clones, order edges between nodes that still exist, and the phase of every named node.
void expect_notes_kept(const Graph& before, const Graph& after) {
  std::map<std::string, const Node*> named;
  for (const Node& node : after.nodes)
    for (const Value& v : after.output_values(node)) named[v.name.str()] = &node;
  for (const Node& node : before.nodes) {
    const Name name = before.values[node.first_output].name;
    const auto kept = named.find(name.str());
    if (name.empty() || kept == named.end()) {
      EXPECT_FALSE(node.origin.clone && !name.empty()) << "a clone went: " << name.view();
      continue;
    }
    EXPECT_EQ(kept->second->origin.clone, node.origin.clone) << name.view();
    EXPECT_EQ(kept->second->origin.phase, node.origin.phase) << name.view();
    EXPECT_EQ(kept->second->origin.path, node.origin.path) << name.view();
    if (node.n_after > 0) {
      EXPECT_GT(kept->second->n_after, 0) << name.view();
    }
  }
}

class PassesOnRandomPrograms : public ::testing::TestWithParam<int> {};

TEST_P(PassesOnRandomPrograms, EveryPassKeepsEveryBit) {
  const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(GetParam());
  const Graph graph = PassProgram(seed).make(10 + GetParam() % 60);
  for (const Pass* pass : all_passes()) {
    SCOPED_TRACE(std::string(pass->name) + ", TAPEDECK_TEST_SEED=" + std::to_string(seed));
    const PassOptions options = pass->asked_for ? pass->sample : PassOptions{};
    const Graph after = run_pass(*pass, graph, options);
    ASSERT_NO_THROW(verify(after)) << print(graph) << print(after);
    expect_same_run(graph, after, seed);
    if (HasFailure()) FAIL() << print(graph) << "became\n" << print(after);
    // dead_code may drop clones that no node reads, so its notes are not compared.
    if (std::string(pass->name) != "dead_code") expect_notes_kept(graph, after);
    if (pass->always) continue;  // insert_copies runs once, at the end; a second run could insert a copy that is there already
    const Graph twice = run_pass(*pass, after, options);
    EXPECT_EQ(print(twice), print(after)) << "not idempotent on\n" << print(graph);
  }
}

TEST_P(PassesOnRandomPrograms, AnyOrderOfPassesKeepsEveryBit) {
  const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(GetParam());
  const Graph graph = PassProgram(seed).make(10 + GetParam() % 60);
  std::vector<const Pass*> passes;
  for (const Pass* pass : all_passes())
    if (!pass->always && !pass->asked_for) passes.push_back(pass);
  std::mt19937_64 random(seed);
  for (int order = 0; order < 3; ++order) {
    std::shuffle(passes.begin(), passes.end(), random);
    Graph after = graph;
    std::string trace;
    for (const Pass* pass : passes) {
      after = run_pass(*pass, std::move(after));
      trace += std::string(pass->name) + " ";
    }
    SCOPED_TRACE(trace + "TAPEDECK_TEST_SEED=" + std::to_string(seed));
    ASSERT_NO_THROW(verify(after));
    expect_same_run(graph, after, seed);
  }
  PassRunner runner;
  const Graph simple = simplify(graph, &runner);
  expect_same_run(graph, simple, seed);
  EXPECT_LE(simple.node_count(), graph.node_count());
}

TEST_P(PassesOnRandomPrograms, FastMathStaysNear) {
  const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(GetParam());
  const Graph graph = PassProgram(seed, PassProgram::Kind::tame).make(10 + GetParam() % 40);
  PassOptions options;
  options.fast_math = true;
  const Graph after = run_pass(pass_named("algebra"), graph, options);
  ASSERT_NO_THROW(verify(after));
  test::expect_near_run(graph, after, seed, 1e-3);
  EXPECT_EQ(print(run_pass(pass_named("algebra"), after, options)), print(after)) << "not idempotent on\n" << print(graph);
}

TEST_P(PassesOnRandomPrograms, PiecesAndGroupsAreConvex) {
  const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("TAPEDECK_TEST_SEED=" + std::to_string(seed));
  const Graph graph = PassProgram(seed).make(10 + GetParam() % 60);
  const FusionGroups groups = find_fusion_groups(graph);
  for (NodeId a = 0; a < graph.node_count(); ++a)
    for (NodeId b = a + 1; b < graph.node_count(); ++b) {
      if (groups.of_node[a] == kNone || groups.of_node[a] != groups.of_node[b]) continue;
      for (NodeId between = a + 1; between < b; ++between)  // every node on a path from a to b must be in the group too
        if (groups.of_node[between] != groups.of_node[a]) {
          EXPECT_FALSE(reachable(graph, a, between) && reachable(graph, between, b)) << a << " " << between << " " << b << "\n"
                                                                                     << print(graph);
        }
    }
  const Partition parts = partition(graph, [&](const Graph& g, NodeId n) { return (g.nodes[n].op->id + n) % 3 != 0; });
  for (std::size_t p = 0; p < parts.pieces.size(); ++p) {
    ASSERT_NO_THROW(verify(parts.pieces[p].graph));
    for (ValueId v : parts.pieces[p].inputs)
      if (const NodeId maker = graph.values[v].node; maker != kNone) {
        EXPECT_LT(parts.of_node[maker], static_cast<std::int32_t>(p));
      }
  }
  const auto inputs = operands_of(graph, 0, graph.n_inputs, seed),
             state = operands_of(graph, graph.n_inputs, graph.n_state, seed + 1);
  test::expect_equal_results(run_eagerly(graph, inputs, state), run_pieces(graph, parts, inputs, state));
}

TEST_P(PassesOnRandomPrograms, PlacedNodesFindTheirOperandsThere) {
  const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("TAPEDECK_TEST_SEED=" + std::to_string(seed));
  const Graph graph = PassProgram(seed).make(10 + GetParam() % 60);
  PassOptions options;
  options.devices.of_node = [&](const Graph&, NodeId n) {
    return (static_cast<std::uint64_t>(n) * 7 + seed) % 5 == 0 ? "cpu:1" : (n % 4 == 0 ? "cpu" : "");
  };
  options.devices.of_value = [](const Graph&, ValueId v) { return v % 2 ? "cpu:1" : ""; };
  const Graph placed = run_pass(pass_named("place_devices"), graph, options);
  ASSERT_NO_THROW(verify(placed));
  std::vector<Name> devices;
  ASSERT_NO_THROW(devices = devices_of_values(placed, options.devices)) << print(placed);
  for (ValueId v : placed.outputs)
    if (placed.values[v].node != kNone && !devices[v].empty()) {
      EXPECT_EQ(devices[v], Name("cpu"));
    }
  for (const Update& u : placed.updates)
    if (!devices[u.value].empty()) {
      EXPECT_EQ(devices[u.value], devices[u.state]);
    }
  expect_same_run(graph, placed, seed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PassesOnRandomPrograms, ::testing::Range(0, test::seeds(80)));

// ---- the identities of the algebra pass, one by one ----

// Numbers that break wrong identities: both zeros, infinities, NaNs, subnormal numbers, the largest number.
Tensor special_values(DType dtype, std::int64_t n, int from) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> floats = {0.0,    -0.0, 1.0,  -1.0,  inf, -inf, nan,    -nan, 1e-40,
                                      -1e-40, 6e-8, 3e38, 65504, 0.5, -2.5, 1e-310, 2.0};
  const std::vector<double> wholes = {0, 1, 2, 3, 255, 7, 128, 64, 5};
  const std::vector<double> signed_wholes = {0, -1, 1, 2147483647.0, -2147483648.0, 7, -128};
  const std::vector<double>& values = is_floating(dtype)                              ? floats
                                      : dtype == DType::u8 || dtype == DType::boolean ? wholes
                                                                                      : signed_wholes;
  Tensor t = empty({DType::f64, {n}});
  auto* at = static_cast<double*>(t.mutable_data());
  for (std::int64_t i = 0; i < n; ++i) at[i] = values[static_cast<std::size_t>(i + from) % values.size()];
  return cast(t, dtype);
}

const char* dtype_text(DType d) { return dtype_name(d); }

// Prints a pattern as lines of graph text and returns the name of the result. Each number of the pattern becomes a `full`.
std::string lines_of(const Pattern& p, DType dtype, const std::string& shape, std::map<char, std::string>& variables,
                     std::string* text, int* next) {
  const std::string type = std::string(dtype_text(dtype)) + shape;
  if (p.kind == Pattern::Kind::value && p.variable != 't') return variables[p.variable] = std::string("%") + p.variable;
  const std::string name = "%v" + std::to_string((*next)++);
  if (p.kind == Pattern::Kind::value) return "%t";
  if (p.kind == Pattern::Kind::op) {
    std::string operands;
    const bool condition = std::string(p.op->name) == "where";
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
      const DType of = condition && i == 0 ? DType::boolean : dtype;
      operands += (i ? ", " : "") + lines_of(p.operands[i], of, shape, variables, text, next);
    }
    const std::string made = std::string(p.op->name);
    const bool truth = made == "less" || made == "greater" || made == "equal";
    *text += "  " + name + ": " + (truth ? "bool" + shape : type) + " = " + made + "(" + operands + ")\n";
    return name;
  }
  const double number = p.kind == Pattern::Kind::number ? p.number : p.variable == 'k' ? 2.0 : 3.0;
  const std::string value = std::signbit(number) ? "-" + std::to_string(-number) : std::to_string(number);
  *text +=
      "  " + name + ": " + dtype_text(dtype) + "[] = full() {shape=[], dtype=" + dtype_text(dtype) + ", value=" + value + "}\n";
  return name;
}

Graph graph_of(const Pattern& p, DType dtype) {
  std::map<char, std::string> variables;
  std::string body;
  int next = 0;
  const std::string result = lines_of(p, dtype, "[40]", variables, &body, &next);
  const std::string type = std::string(dtype_text(dtype)) + "[40]";
  return parse("graph g(%x: " + type + ", %y: " + type + ", %t: bool[40]) {\n" + body + "  return " + result + "\n}\n",
               "identity");
}

bool named_dtype(Numbers of, DType d) {
  switch (of) {
    case Numbers::floating:
      return is_floating(d);
    case Numbers::whole:
      return !is_floating(d) && d != DType::boolean;
    case Numbers::boolean:
      return d == DType::boolean;
    case Numbers::arithmetic:
      return d != DType::boolean;
    case Numbers::any:
      return true;
  }
  return false;
}

TEST(Identities, ExactOnesKeepEveryBit) {
  for (const Rule& rule : parse_rules(exact_identities())) {
    int dtypes = 0;
    for (int k = 0; k < kDTypeCount; ++k) {
      const auto dtype = static_cast<DType>(k);
      if (!named_dtype(rule.identity.of, dtype)) continue;
      SCOPED_TRACE(std::string(rule.identity.from) + " -> " + rule.identity.to + " of " + dtype_text(dtype));
      Graph graph;
      try {
        graph = graph_of(rule.from, dtype);
      } catch (const Error&) {
        continue;  // the op does not take this dtype
      }
      const Graph after = run_pass(pass_named("dead_code"), run_pass(pass_named("algebra"), graph));
      ++dtypes;
      EXPECT_NE(print(after), print(graph)) << "the identity is not applied";
      for (int from = 0; from < 3; ++from) {
        const std::vector<Tensor> inputs = {special_values(dtype, 40, from), special_values(dtype, 40, from + 5),
                                            special_values(DType::boolean, 40, from)};
        test::expect_equal_results(run_eagerly(graph, inputs, {}), run_eagerly(after, inputs, {}));
      }
    }
    EXPECT_GT(dtypes, 0) << rule.identity.from << " was never tried";
  }
}

TEST(Identities, FastOnesApplyOnlyWhenAskedAndStayNear) {
  for (const Rule& rule : parse_rules(fast_identities())) {
    SCOPED_TRACE(rule.identity.from);
    // tested in conformance_passes_test.cpp (T49)
    if (std::string(rule.identity.from).find("softmax") != std::string::npos) continue;
    const Graph graph = graph_of(rule.from, DType::f64);
    EXPECT_EQ(print(run_pass(pass_named("algebra"), graph)), print(graph)) << "applied without fast_math";
    PassOptions options;
    options.fast_math = true;
    const Graph after = run_pass(pass_named("algebra"), graph, options);
    EXPECT_NE(print(after), print(graph)) << "not applied";
    Tensor x = empty({DType::f64, {40}}), y = empty({DType::f64, {40}});
    for (int i = 0; i < 40; ++i) {
      static_cast<double*>(x.mutable_data())[i] = 0.3 + 0.05 * i;
      static_cast<double*>(y.mutable_data())[i] = 2.5 - 0.04 * i;
    }
    const std::vector<Tensor> inputs = {x, y, special_values(DType::boolean, 40, 0)};
    const Tensor a = run_eagerly(graph, inputs, {}).outputs[0], b = run_eagerly(after, inputs, {}).outputs[0];
    ASSERT_EQ(a.type(), b.type());
    const auto left = a.to_vector<double>(), right = b.to_vector<double>();
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 1e-12 * (1 + std::fabs(left[i]))) << i;
  }
}

}  // namespace
}  // namespace tapedeck
