// Tests verify(): each broken graph differs from a good graph in one place. The error must name the node and the fault.
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace tapedeck {
namespace {

Graph good() {
  return parse(R"(graph good(%x: f32[2,3], %y: f32[3]) state(%w: f32[3], %v: f32[3]) {
    %a: f32[2,3] = add(%x, %w)
    %s: f32[3] = sum(%a) {axes=[0], keepdims=false}   [after=[%y]]
    %c: f32[3] = constant() {value=[1,2,3]}
    %d: f32[3], %e: f32[] = opaque(%s, %c)
    return out=%d, %e
    update %w = %d
  })");
}

std::string message_of(const std::function<void(Graph&)>& damage) {
  Graph g = good();
  damage(g);
  try {
    verify(g);
  } catch (const InvalidGraphError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Verify, a_good_graph_passes) {
  EXPECT_NO_THROW(verify(good()));
  EXPECT_NO_THROW(verify(Graph()));
  Graph without_names = good();
  without_names.output_names.clear();
  EXPECT_NO_THROW(verify(without_names));
}

TEST(Verify, operands_come_before_their_readers) {
  EXPECT_EQ(message_of([](Graph& g) { g.refs[g.nodes[0].first_input] = 5; }),
            "invalid graph: node 0: %a: f32[2,3] = add(%s, %w): operand %s is not defined before it (invariant 1)");
  EXPECT_EQ(message_of([](Graph& g) { g.refs[g.nodes[0].first_input] = 4; }),
            "invalid graph: node 0: %a: f32[2,3] = add(%a, %w): operand %a is not defined before it (invariant 1)");
  EXPECT_EQ(message_of([](Graph& g) { g.refs[g.nodes[0].first_input] = -7; }),
            "invalid graph: node 0: %a: f32[2,3] = add(%?-7, %w): operand %?-7 is not defined before it (invariant 1)");
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[1].n_inputs = 1000; }),
            "invalid graph: node 1 (sum): its operand list is outside the pool");
}

TEST(Verify, outputs_are_dense_and_know_their_node) {
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[1].first_output = 4; }),
            "invalid graph: node 1 (sum): its outputs start at 4, expected 5 (invariant 2)");
  EXPECT_EQ(message_of([](Graph& g) { g.values[5].node = 0; }),
            "invalid graph: node 1: %s: f32[3] = sum(%a) {axes=[0], keepdims=false}: output 0 names node 0 as its producer "
            "(invariant 2)");
  EXPECT_EQ(message_of([](Graph& g) { g.values[0].node = 2; }),
            "invalid graph: %x is an input or state value, yet names node 2 as its producer (invariant 2)");
  EXPECT_EQ(message_of([](Graph& g) { g.values.push_back({}); }), "invalid graph: 1 values belong to no node (invariant 2)");
  EXPECT_EQ(message_of([](Graph& g) { g.n_state = 100; }), "invalid graph: 2 inputs and 100 state values, but only 9 values");
}

TEST(Verify, types_agree_with_the_op) {
  EXPECT_EQ(message_of([](Graph& g) { g.values[4].type.dtype = DType::f64; }),
            "invalid graph: node 0: %a: f64[2,3] = add(%x, %w): the op gives f32[2,3] (invariant 3)");
  EXPECT_EQ(
      message_of([](Graph& g) { g.values[0].type.dtype = DType::f64; }),
      "invalid graph: node 0: %a: f32[2,3] = add(%x, %w): [add] operands differ in dtype: f64[2,3] and f32[3] (invariant 3)");
  EXPECT_EQ(message_of([](Graph& g) { g.values[6].type.shape = {4}; }),
            "invalid graph: node 2: %c: f32[4] = constant() {value=[1.0,2.0,3.0]}: its constant is f32[3] (invariant 3)");
  EXPECT_EQ(message_of([](Graph& g) { g.constants.clear(); }),
            "invalid graph: node 2: %c: f32[3] = constant() {abstract=true}: its constant is not in the graph");
  EXPECT_EQ(message_of([](Graph& g) { g.values[0].type.shape.sizes[0] = -2; }),
            "invalid graph: the type of %x is too large or has a negative size: f32[-2,3]");
  EXPECT_EQ(message_of([](Graph& g) { g.values[0].type.shape.rank = 9; }), "invalid graph: %x has rank 9");
  EXPECT_EQ(message_of([](Graph& g) { g.values[0].type.dtype = static_cast<DType>(77); }),
            "invalid graph: %x has an unknown dtype");
}

TEST(Verify, names_are_there_and_unique) {
  EXPECT_EQ(message_of([](Graph& g) { g.values[1].name = {}; }), "invalid graph: input 1 has no name (invariant 4)");
  EXPECT_EQ(message_of([](Graph& g) { g.values[2].name = {}; }), "invalid graph: state value 2 has no name (invariant 4)");
  EXPECT_EQ(message_of([](Graph& g) { g.values[2].name = "x"; }), "invalid graph: two values are named %x (invariant 4)");
  EXPECT_EQ(message_of([](Graph& g) { g.values[5].name = "a"; }), "invalid graph: two values are named %a (invariant 4)");
}

TEST(Verify, updates_fit) {
  EXPECT_EQ(message_of([](Graph& g) { g.updates[0].value = 0; }),
            "invalid graph: update of %w: f32[3] from %x: f32[2,3]: the types differ (invariant 5)");
  EXPECT_EQ(message_of([](Graph& g) { g.updates.push_back(g.updates[0]); }),
            "invalid graph: %w is updated twice (invariant 5)");
  EXPECT_EQ(message_of([](Graph& g) { g.updates[0].state = 1; }),
            "invalid graph: update of %y, which is not a state value (invariant 5)");
  EXPECT_EQ(message_of([](Graph& g) { g.updates[0].value = 99; }),
            "invalid graph: update of %w from value 99, which does not exist (invariant 5)");
  EXPECT_EQ(message_of([](Graph& g) { g.updates[0].state = -1; }),
            "invalid graph: update of %?-1, which is not a state value (invariant 5)");
}

TEST(Verify, order_edges_and_outputs_name_values_that_exist) {
  EXPECT_EQ(message_of([](Graph& g) { g.refs[g.nodes[1].first_after] = 6; }),
            "invalid graph: node 1: %s: f32[3] = sum(%a) {axes=[0], keepdims=false}: `after` names %c, which is not defined "
            "before it "
            "(invariant 6)");
  EXPECT_EQ(message_of([](Graph& g) { g.outputs[0] = 9; }), "invalid graph: return names value 9, which does not exist");
  EXPECT_EQ(message_of([](Graph& g) { g.output_names.pop_back(); }), "invalid graph: 2 outputs, but 1 output names");
}

TEST(Verify, attributes_are_in_the_pool) {
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[1].attrs = kNone; }), "invalid graph: node 1 (sum): its attributes are missing");
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[0].attrs = 0; }),
            "invalid graph: node 0 (add): it has attributes the op does not take");
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[1].attrs = 1 << 20; }),
            "invalid graph: node 1 (sum): its attributes are outside the pool");
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[1].attrs = 3; }),
            "invalid graph: node 1 (sum): its attributes are outside the pool");
  EXPECT_EQ(message_of([](Graph& g) { g.nodes[1].op = nullptr; }), "invalid graph: node 1 has no op");
}

}  // namespace
}  // namespace tapedeck
