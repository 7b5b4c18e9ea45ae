// A graph to which a node could not be added, for want of memory, is the graph as before.
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/allocation/failures.h>

#include <gtest/gtest.h>

#include <new>

namespace tapedeck {
namespace {

// Every list of the graph is full, so that each must grow for the next node.
Graph full_graph() {
  Graph g = parse(R"(graph g(%x: f32[2,3]) {
    %t: f32[3,2] = transpose(%x) {axes=[1,0]}
    %s: f32[2] = sum(%t) {axes=[0]} [after=[%x]]
    return %s
  })");
  g.values.shrink_to_fit();
  g.nodes.shrink_to_fit();
  g.refs.shrink_to_fit();
  g.regions.shrink_to_fit();
  GraphAccess::attr_pool(g).shrink_to_fit();
  return g;
}

// The sum once more: its operands, attributes and `after` values lie in the graph itself.
void repeat_sum(Graph& g) {
  const Node sum = g.nodes[1];
  const std::vector<Type> types = g.output_types(sum);
  g.add_node(*sum.op, g.inputs(sum), g.attributes(sum), types, sum.origin, g.after(sum));
}

TEST(AllocationFails, WhileANodeIsAdded) {
  Graph wanted = full_graph();
  repeat_sum(wanted);
  long failed = 0;
  for (long k = 1;; ++k) {
    Graph g = full_graph();
    const std::string before = print(g);
    bool threw = false;
    {
      const test::FailAllocation fail(k);
      try {
        repeat_sum(g);
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      if (!fail.failed()) break;
    }
    ++failed;
    EXPECT_TRUE(threw);
    EXPECT_EQ(print(g), before) << "allocation " << k;
    const Graph untouched = full_graph();
    EXPECT_EQ(g.refs, untouched.refs) << "allocation " << k;
    EXPECT_EQ(GraphAccess::attr_pool(g).size(), GraphAccess::attr_pool(untouched).size()) << "allocation " << k;
    EXPECT_EQ(g.values.size(), untouched.values.size());
    repeat_sum(g);
    EXPECT_EQ(print(g), print(wanted));
  }
  EXPECT_GE(failed, 5);
}

}  // namespace
}  // namespace tapedeck
