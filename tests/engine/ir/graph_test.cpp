// Tests Graph (nodes, names, copies), Rewriter (drops, replaces, clones) and attributes (comparison, hashes) on small graphs
// written by hand.
#include <tapedeck/engine/ir/graph.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

const Op& op(const char* name) { return *find_op(name); }

Literal literal_of(std::vector<float> values) {
  auto data = std::make_shared<std::vector<float>>(std::move(values));
  return {Type{DType::f32, {static_cast<std::int64_t>(data->size())}}, std::shared_ptr<const void>(data, data->data()), {}};
}

NodeId add_constant(Graph& g, Literal literal) {
  ConstantAttrs attrs;
  const Type type = literal.type;
  attrs.value.index = g.add_constant(std::move(literal));
  return g.add_node(op("constant"), {}, &attrs, std::span(&type, 1));
}

// ---- building graphs ----

TEST(Graph, builds_nodes_over_inputs_and_state) {
  Graph g;
  const Type type{DType::f32, {2}};
  const ValueId x = g.add_input("x", type), w = g.add_state("w", type, Role::parameter);
  const ValueId operands[] = {x, w};
  const NodeId n = g.add_node(op("add"), operands, nullptr, std::span(&type, 1), {}, std::span(&w, 1));
  EXPECT_TRUE(g.is_input(x) && !g.is_state(x) && g.is_state(w) && !g.is_input(w));
  EXPECT_EQ(g.node_text(n), "%2: f32[2] = add(%x, %w)");
  EXPECT_EQ(g.nodes[n].first_output, 2);
  EXPECT_EQ(g.values[2].node, n);
  EXPECT_EQ(g.after(g.nodes[n])[0], w);
  EXPECT_EQ(g.attributes(g.nodes[n]), nullptr);
  EXPECT_EQ(g.input_types(g.nodes[n]), (std::vector<Type>{type, type}));
  EXPECT_EQ(g.output_types(g.nodes[n]), std::vector<Type>{type});
  EXPECT_NO_THROW(verify(g));
  EXPECT_THROW(g.add_input("late", type), UsageError);
  EXPECT_THROW(g.add_state("late", type, Role::moment), UsageError);
}

TEST(Graph, names_are_what_the_text_shows) {
  Graph g;
  for (const char* name : {"x", "12", "a b", "a.b"}) g.add_input(name, Type{DType::f32, {}});
  EXPECT_EQ(g.value_name(0), "x");
  EXPECT_EQ(g.value_name(1), "\"12\"");
  EXPECT_EQ(g.value_name(2), "\"a b\"");
  EXPECT_EQ(g.value_name(3), "a.b");
}

TEST(Graph, a_node_may_be_built_from_the_pools_it_grows) {
  Graph g;
  const Type type{DType::f32, {2, 3}};
  const ValueId x = g.add_input("x", type);
  ReduceAttrs attrs;
  attrs.axes = {0, 1};
  attrs.keepdims = true;
  const Type out{DType::f32, {1, 1}};
  g.add_node(op("sum"), std::span(&x, 1), &attrs, std::span(&out, 1), {}, std::span(&x, 1));
  for (int i = 0; i < 1000; ++i) {
    const Node& last = g.nodes.back();
    g.add_node(op("sum"), g.inputs(last), g.attributes(last), std::span(&out, 1), {}, g.after(last));
  }
  EXPECT_NO_THROW(verify(g));
  for (const Node& n : g.nodes) {
    ASSERT_TRUE(same_attributes(g, n, g, g.nodes[0]));
    ASSERT_EQ(g.inputs(n)[0], x);
    ASSERT_EQ(g.after(n)[0], x);
  }
}

TEST(Graph, messages_show_no_page_of_numbers) {
  Graph g;
  const NodeId small = add_constant(g, literal_of({1, 2})), large = add_constant(g, literal_of(std::vector<float>(1000)));
  EXPECT_EQ(g.node_text(small), "%0: f32[2] = constant() {value=[1.0,2.0]}");
  EXPECT_EQ(g.node_text(large), "%1: f32[1000] = constant() {1000 elements}");
}

TEST(Graph, copies_are_deep) {
  Graph g = parse("graph g(%x: f32[2]) { %y: f32[1] = sum(%x) {axes=[0], keepdims=true} return %y }");
  const std::string before = print(g);
  Graph copy = g;
  copy.values[1].name = "z";
  copy.refs[0] = 1;
  EXPECT_EQ(print(g), before);
}

// ---- Rewriter ----

const char kChain[] = R"(graph g(%x: f32[2]) state(%w: f32[2]) {
  %a: f32[2] = relu(%x)
  %b: f32[2] = add(%a, %w)                           [path="fc1"]
  %4: f32[2] = exp(%b)
  %c: f32[2] = mul(%4, %b)                           [phase=backward, twin=%4, after=[%a]]
  return %c
  update %w = %b
}
)";

TEST(Rewriter, drops_replaces_and_moves_notes) {
  const Graph g = parse(kChain);
  Rewriter r(g);
  r.replace(2, 0);  // %a is %x from now on
  for (NodeId n = 1; n < g.node_count(); ++n) r.copy(n);
  const Graph out = r.finish();
  EXPECT_NO_THROW(verify(out));
  EXPECT_EQ(print(out), R"(graph g(%x: f32[2]) state(%w: f32[2]) {
  %b: f32[2] = add(%x, %w)                           [path="fc1"]
  %3: f32[2] = exp(%b)
  %c: f32[2] = mul(%3, %b)                           [phase=backward, twin=%3, after=[%x]]
  return %c
  update %w = %b
}
)");
}

TEST(Rewriter, clones_carry_a_mark_and_their_own_operands) {
  const Graph g = parse(
      "graph g(%x: f32[2]) {\n %a: f32[2] = relu(%x)\n %2: f32[2] = exp(%a) [region=1]\n %d: f32[2] = neg(%2)\n return %d }");
  Rewriter r(g);
  r.copy(0);
  r.copy(1);
  const ValueId x = r.at(0), e = r.at(2);
  const NodeId again = r.clone(0, std::span(&x, 1), std::span(&e, 1));
  const ValueId a2 = r.graph().nodes[again].first_output;
  const NodeId third = r.clone(1, std::span(&a2, 1), {});
  r.replace(2, r.graph().nodes[third].first_output);
  r.copy(2);
  const Graph out = r.finish();
  EXPECT_NO_THROW(verify(out));
  EXPECT_EQ(print(out), R"(graph g(%x: f32[2]) {
  %a: f32[2] = relu(%x)
  %2: f32[2] = exp(%a)                               [region=1]
  %3: f32[2] = relu(%x)                              [of=%a, after=[%2]]
  %4: f32[2] = exp(%3)                               [of=%2, region=1]
  %d: f32[2] = neg(%4)
  return %d
}
)");
}

TEST(Rewriter, says_what_a_pass_dropped_and_who_reads_it) {
  const auto message = [](auto rewrite) -> std::string {
    const Graph g = parse("graph g(%x: f32[]) { %a: f32[] = relu(%x) %b: f32[] = neg(%a) return %b }");
    Rewriter r(g);
    try {
      rewrite(r);
      r.finish();
    } catch (const InvalidGraphError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([](Rewriter& r) { r.copy(1); }), "a pass dropped %a, which is read by: %b: f32[] = neg(%a)");
  EXPECT_EQ(message([](Rewriter& r) { r.copy(0); }), "a pass dropped %b, which is read by return");
}

TEST(Rewriter, constants_that_nobody_copies_are_left_behind) {
  Graph g;
  add_constant(g, literal_of({1}));
  const NodeId kept = add_constant(g, literal_of({2}));
  g.outputs = {g.nodes[kept].first_output};
  Rewriter r(g);
  r.copy(kept);
  const Graph out = r.finish();
  ASSERT_EQ(out.constants.size(), 1u);
  EXPECT_EQ(out.node_text(0), "%0: f32[1] = constant() {value=[2.0]}");
}

// ---- comparing and hashing attributes ----

TEST(Attributes, compare_and_hash_field_by_field) {
  Graph g;
  const Type type{DType::f32, {2, 3}};
  const ValueId x = g.add_input("x", type);
  const auto add = [&](Ints axes, bool keepdims, unsigned char padding) {
    alignas(ReduceAttrs) unsigned char bytes[sizeof(ReduceAttrs)];
    std::memset(bytes, padding, sizeof bytes);  // padding and unused list items must not count
    auto* attrs = reinterpret_cast<ReduceAttrs*>(bytes);
    attrs->axes.size = axes.size;
    for (int i = 0; i < axes.size; ++i) attrs->axes.items[i] = axes[i];
    attrs->keepdims = keepdims;
    return g.add_node(op("sum"), std::span(&x, 1), attrs, std::span(&type, 1));
  };
  const NodeId a = add({0, 1}, true, 0x00), b = add({0, 1}, true, 0xab), c = add({0, 1}, false, 0), d = add({0}, true, 0);
  const auto same = [&](NodeId m, NodeId n) { return same_attributes(g, g.nodes[m], g, g.nodes[n]); };
  const auto hash = [&](NodeId n) { return hash_attributes(g, g.nodes[n]); };
  EXPECT_TRUE(same(a, a) && same(a, b));
  EXPECT_FALSE(same(a, c) || same(a, d));
  EXPECT_EQ(hash(a), hash(b));
  EXPECT_NE(hash(a), hash(c));
  EXPECT_NE(hash(a), hash(d));
}

TEST(Attributes, literals_compare_by_content) {
  Graph g, h;
  Literal nameless{Type{DType::f32, {1}}, nullptr, {}}, named{Type{DType::f32, {1}}, nullptr, "w"};
  const NodeId one = add_constant(g, literal_of({1})), also_one = add_constant(g, literal_of({1})),
               two = add_constant(g, literal_of({2}));
  const NodeId zero = add_constant(g, literal_of({0.0f})), minus_zero = add_constant(g, literal_of({-0.0f}));
  const NodeId abstract = add_constant(g, nameless), other_abstract = add_constant(g, nameless);
  const NodeId w = add_constant(g, named), also_w = add_constant(g, named);
  const NodeId elsewhere = add_constant(h, literal_of({1}));
  const auto same = [&](NodeId m, NodeId n) { return same_attributes(g, g.nodes[m], g, g.nodes[n]); };
  EXPECT_TRUE(same(one, also_one));
  EXPECT_TRUE(same_attributes(g, g.nodes[one], h, h.nodes[elsewhere]));
  EXPECT_EQ(hash_attributes(g, g.nodes[one]), hash_attributes(h, h.nodes[elsewhere]));
  EXPECT_FALSE(same(one, two));
  EXPECT_FALSE(same(zero, minus_zero));
  EXPECT_TRUE(same(abstract, abstract));
  EXPECT_FALSE(same(abstract, other_abstract)) << "two unknown constants need not be equal";
  EXPECT_TRUE(same(w, also_w));
  EXPECT_FALSE(same(one, w));
}

}  // namespace
}  // namespace tapedeck
