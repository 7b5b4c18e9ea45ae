// Cases of SEEDS.md about replay on several devices, bulking on and off, and shared memory. The original tests put groups of
// nodes on the devices of two machines. Here the device map puts nodes on the logical devices cpu and cpu:1. The oracles are
// eager runs and numbers by hand.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/value_devices.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/value_named.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace tapedeck {
namespace {

std::vector<ValueId> by_names(const Graph& g, const std::vector<std::string>& names) {
  std::vector<ValueId> values;
  for (const std::string& name : names) values.push_back(testing::value_named(g, name));
  return values;
}

// Adds gradients to the outputs of the graph.
Graph with_gradients(const Graph& g, const std::string& target, const std::vector<std::string>& wrt,
                     const std::vector<GradRequest>& requests = {}) {
  GraphGradientOptions options;
  options.heads_as_inputs = true;
  options.requests = requests;
  const std::vector<ValueId> targets = {testing::value_named(g, target)}, of = by_names(g, wrt);
  GraphGradient result = gradient(g, targets, of, options);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (result.gradients[i] == kNone) continue;
    result.graph.outputs.push_back(result.gradients[i]);
    result.graph.output_names.push_back("d." + wrt[i]);
  }
  return std::move(result.graph);
}

// Places nodes and values whose names begin with `prefix` on cpu:1.
PassOptions on_second(const std::string& prefix) {
  const auto place = [prefix](const std::string& name) { return name.starts_with(prefix) ? "cpu:1" : ""; };
  PassOptions options;
  options.devices.of_node = [place](const Graph& g, NodeId n) { return place(g.value_name(g.nodes[n].first_output)); };
  options.devices.of_value = [place](const Graph& g, ValueId v) { return place(g.value_name(v)); };
  return options;
}

int crossings(const Graph& g) {
  int count = 0;
  for (const Node& node : g.nodes) count += std::string_view(node.op->name) == "to_device";
  return count;
}

// Runs one step on `threads` threads and returns all outputs.
std::vector<Tensor> replayed(const Graph& g, const std::map<std::string, Tensor>& given, int threads) {
  Executor executor(make_plan(g), {.threads = threads});
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) {
    const std::string name = g.value_name(v);
    const Tensor value = given.count(name) ? given.at(name) : default_value(g.values[v].type, 3, name);
    if (g.is_input(v))
      executor.set_input(name, value);
    else
      executor.set_state(name, value);
  }
  executor.run();
  return executor.outputs();
}

// ---- several devices ----

TEST(ConformancePool, T103_EachArgumentLivesOnTheDeviceOfItsGroup) {
  const Graph net = parse(
      R"(graph mlp(%data: f32[4,20]) state(%s1.w: f32[20,16], %s1.b: f32[16], %s2.w2: f32[16,8], %s2.b2: f32[8], %s2.w3: f32[8,5]) {
    %s1.fc: f32[4,16] = matmul(%data, %s1.w)
    %s1.z: f32[4,16] = add(%s1.fc, %s1.b)
    %s1.act: f32[4,16] = relu(%s1.z)
    %s2.fc2: f32[4,8] = matmul(%s1.act, %s2.w2)
    %s2.z: f32[4,8] = add(%s2.fc2, %s2.b2)
    %s2.act2: f32[4,8] = relu(%s2.z)
    %s2.fc3: f32[4,5] = matmul(%s2.act2, %s2.w3)
    %s2.out: f32[4,5] = softmax(%s2.fc3) {axis=1}
    return %s2.out
  })");
  const std::vector<std::string> arguments = {"data", "s1.w", "s1.b", "s2.w2", "s2.b2", "s2.w3"};
  const std::vector<GradRequest> all(6, GradRequest::write);
  std::vector<GradRequest> mixed = all;
  mixed[0] = mixed[2] = mixed[5] = GradRequest::none;
  for (const auto& requests : {all, mixed}) {
    const Graph g = with_gradients(net, "s2.out", arguments, requests);
    const PassOptions options = on_second("s2.");
    const Graph placed = place_devices(g, options);
    const std::vector<Name> where = devices_of_values(placed, options.devices);
    for (const std::string& a : arguments)
      EXPECT_EQ(where[testing::value_named(placed, a)].view(), a.starts_with("s2.") ? "cpu:1" : "cpu") << a;
    // The node that computes a gradient of a group's node runs on the device of this group.
    std::map<std::string, NodeId> made_by;
    for (NodeId n = 0; n < placed.node_count(); ++n) made_by[placed.value_name(placed.nodes[n].first_output)] = n;
    int followed = 0;
    for (const Node& node : placed.nodes) {
      if (node.origin.twin.empty() || std::string_view(node.op->name) == "to_device") continue;
      const auto twin = made_by.find(node.origin.twin.str());
      if (twin == made_by.end()) continue;
      ++followed;
      EXPECT_EQ(where[node.first_output], where[placed.nodes[twin->second].first_output]) << node.origin.twin.view();
    }
    EXPECT_GT(followed, 5);
    EXPECT_GE(crossings(placed), 2) << "forward one way, backward the other";
    for (int threads : {1, 2}) {
      const std::vector<Tensor> one = replayed(g, {}, threads), two = replayed(placed, {}, threads);
      ASSERT_EQ(one.size(), two.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(bit_equal(one[i], two[i])) << "output " << i << ", threads " << threads;
    }
  }
}

TEST(ConformancePool, T104_AChainOverTwoDevices) {
  for (const std::string type : {"f16", "f32", "f64"}) {
    const std::string t = type + "[4,5]";
    const Graph net = parse("graph chain(%data1: " + t + ", %data2: " + t + ", %data3: " + t + ") {\n  %d1.sum: " + t +
                            " = add(%data1, %data2)\n  %three: " + type + "[] = constant() {value=3.0}\n  %d1.times: " + t +
                            " = mul(%d1.sum, %three)\n  %d2.net: " + t + " = add(%d1.times, %data3)\n  return %d2.net\n}");
    const Graph g = with_gradients(net, "d2.net", {"data1", "data2", "data3"});
    const Graph placed = place_devices(g, on_second("d2."));
    EXPECT_GE(crossings(placed), 2);
    std::map<std::string, Tensor> given;
    for (const auto& [name, number] :
         std::map<std::string, double>{{"data1", 1}, {"data2", 2}, {"data3", 3}, {"grad.d2.net", 1}})
      given[name] = full({4, 5}, number, g.values[0].type.dtype);
    const double expected[] = {12, 3, 3, 1};
    for (int threads : {1, 2}) {
      const std::vector<Tensor> one = replayed(g, given, threads), two = replayed(placed, given, threads);
      ASSERT_EQ(two.size(), 4u);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(bit_equal(one[i], two[i])) << type << ", output " << i;
        EXPECT_TRUE(bit_equal(two[i], full({4, 5}, expected[i], g.values[0].type.dtype))) << type << ", output " << i;
      }
    }
  }
}

// Half of the rows are on each device. The rate is 1, the head gradient is 1, all is rescaled by 1 / 7. So the gradient of
// the bias is the sum of the head's rows.
TEST(ConformancePool, T88_BiasAfterAReshapeOnTwoDevices) {
  const Graph net = parse(R"(
    graph step(%x: f32[3,20], %s2.x: f32[4,20], %h: f32[3,20], %s2.h: f32[4,20], %rescale: f32[]) state(%w: f32[20,20], %b: f32[20]) {
    %y: f32[3,20] = linear(%x, %w, %b)
    %s2.y: f32[4,20] = linear(%s2.x, %w, %b)
    %g: f32[20] = sum(%h) {axes=[0]}
    %s2.g: f32[20] = sum(%s2.h) {axes=[0]}
    %all: f32[20] = add(%g, %s2.g)
    %step: f32[20] = mul(%all, %rescale)
    %b2: f32[20] = sub(%b, %step)
    return %y, %s2.y
    update %b = %b2
  })");
  const Graph placed = place_devices(net, on_second("s2."));
  EXPECT_GE(crossings(placed), 2) << "the bias goes over, the gradient comes back";
  const auto rows = [](std::int64_t n) { return Type{DType::f32, {n, 20}}; };
  for (int threads : {1, 2}) {
    Executor small(make_plan(placed), {.threads = threads});
    small.set_state("w", zeros({20, 20}));
    small.set_state("b", zeros({20}));
    Executor large =
        small.reshape({{"x", rows(7)}, {"s2.x", rows(7)}, {"h", rows(7)}, {"s2.h", rows(7)}}, {.allow_up_sizing = true});
    double bias = -1;
    for (Executor* e : {&small, &large}) {
      for (ValueId v = 0; v < 4; ++v) {
        const Shape& shape = e->plan().graph.values[v].type.shape;
        e->set_input(v, v < 2 ? zeros(shape) : ones(shape));
      }
      e->set_input("rescale", scalar(1.0 / 7));
      e->run();
      for (const Executor* reader : {&small, &large})
        for (float b : reader->state("b").to_vector<float>())
          EXPECT_FLOAT_EQ(b, static_cast<float>(bias)) << threads << " threads";
      bias = -3;
    }
    EXPECT_EQ(large.output("y").shape(), (Shape{7, 20}));
    EXPECT_EQ(large.output("s2.y").shape(), (Shape{7, 20}));
  }
}

// ---- shared memory ----

// As in MXNet's shared group: both executors have the same argument arrays, and the same arrays in which gradients are
// summed.
TEST(ConformancePool, T105_ASharedGroupIsTheSameMemory) {
  const auto graph = [](const char* name, int batch) {
    const std::string rows = std::to_string(batch);
    return parse("graph " + std::string(name) + "(%x: f32[" + rows + ",10]) state(%fc.w: f32[10,4], %grad.fc.w: f32[10,4], %" +
                 name + ".own: f32[]) {\n  %y: f32[" + rows + ",4] = matmul(%x, %fc.w)\n  %xt: f32[10," + rows +
                 "] = transpose(%x) {axes=[1,0]}\n  %g: f32[10,4] = matmul(%xt, %y)\n" +
                 "  %sum: f32[10,4] = add(%grad.fc.w, %g)\n  %n: f32[] = neg(%" + name +
                 ".own)\n  return %y\n  update %grad.fc.w = %sum, %" + name + ".own = %n\n}");
  };
  const auto pool = std::make_shared<ReplayPool>();
  const Graph large = graph("large", 16), small = graph("small", 4);
  Executor one(make_plan(large), {.pool = pool}), two(make_plan(small), {.pool = pool});
  for (const char* name : {"fc.w", "grad.fc.w"}) one.set_state(name, default_value({DType::f32, {10, 4}}, 1, name));
  one.set_state("large.own", scalar(1));
  two.set_state("small.own", scalar(2));

  std::map<std::string, std::set<const void*>> where;
  std::map<std::string, int> held;
  pool->memory()->each_member([&](const replay::Member& m) {
    for (const auto& s : m.state) where[s->name.str()].insert(s->base), ++held[s->name.str()];
  });
  for (const char* name : {"fc.w", "grad.fc.w"}) {
    EXPECT_EQ(held[name], 2);
    EXPECT_EQ(where[name].size(), 1u) << name << " is at one place";
  }
  EXPECT_EQ(held["large.own"], 1);

  std::vector<Tensor> shared = {one.state("fc.w"), one.state("grad.fc.w")};
  for (int i = 0; i < 4; ++i) {
    Executor& runs = i % 2 ? two : one;
    const Graph& g = i % 2 ? small : large;
    const Tensor x = default_value(g.values[0].type, static_cast<std::uint64_t>(i), "x");
    runs.set_input("x", x);
    runs.run();
    const EagerResult eager = run_eagerly(g, {x}, {shared[0], shared[1], scalar(1)});
    shared = {eager.state[0], eager.state[1]};
    EXPECT_TRUE(bit_equal(runs.outputs()[0], eager.outputs[0]));
    for (const Executor* e : {&one, &two})
      EXPECT_TRUE(bit_equal(e->state("grad.fc.w"), shared[1])) << "gradients add up in one place";
  }
}

// ---- bulking: many nodes in one segment ----

TEST(ConformancePool, T86_BulkingOnAndOff) {
  struct Case {
    const char* op;
    std::function<double(double, double)> y, dx, dy;
  };
  const auto one = [](double, double) { return 1.0; };
  const Case cases[] = {
      {"add", [](double a, double b) { return a + b; }, one, one},
      {"sub", [](double a, double b) { return a - b; }, one, [](double, double) { return -1.0; }},
      {"mul", [](double a, double b) { return a * b; }, [](double, double b) { return b; }, [](double a, double) { return a; }},
      {"div", [](double a, double b) { return a / b; }, [](double, double b) { return 1 / b; },
       [](double a, double b) { return -a / (b * b); }},
      {"maximum", [](double a, double b) { return std::max(a, b); }, [](double a, double b) { return a >= b ? 1.0 : 0.0; },
       [](double a, double b) { return b > a ? 1.0 : 0.0; }},
      {"minimum", [](double a, double b) { return std::min(a, b); }, [](double a, double b) { return a <= b ? 1.0 : 0.0; },
       [](double a, double b) { return b < a ? 1.0 : 0.0; }},
  };
  const Type type{DType::f32, {6, 7}};
  for (const Case& c : cases) {
    const Graph g = with_gradients(
        parse("graph bind(%a: f32[6,7], %b: f32[6,7]) {\n  %y: f32[6,7] = " + std::string(c.op) + "(%a, %b)\n  return %y\n}"),
        "y", {"a", "b"});
    for (double segment_us : {0.0, 50.0})
      for (int threads : {1, 2})
        for (std::uint64_t bind = 0; bind < 3; ++bind) {  // binds other arrays each time
          PlanOptions options;
          options.segment_us = segment_us;
          Executor executor(make_plan(g, options), {.threads = threads});
          const Tensor a = default_value(type, bind, "a"), b = default_value(type, bind, "b"),
                       head = default_value(type, bind, "head");
          executor.set_input("a", a);
          executor.set_input("b", b);
          executor.set_input("grad.y", head);
          executor.run();
          const std::vector<float> x = a.to_vector<float>(), z = b.to_vector<float>(), h = head.to_vector<float>();
          const std::vector<float> y = executor.outputs()[0].to_vector<float>(), da = executor.outputs()[1].to_vector<float>(),
                                   db = executor.outputs()[2].to_vector<float>();
          for (std::size_t i = 0; i < x.size(); ++i) {
            const double scale = 1e-5 * std::max(1.0, std::abs(c.dy(x[i], z[i])));
            EXPECT_NEAR(y[i], c.y(x[i], z[i]), 1e-5 * std::max(1.0, std::abs(c.y(x[i], z[i])))) << c.op;
            EXPECT_NEAR(da[i], h[i] * c.dx(x[i], z[i]), 1e-5 * std::max(1.0, std::abs(c.dx(x[i], z[i])))) << c.op;
            EXPECT_NEAR(db[i], h[i] * c.dy(x[i], z[i]), scale) << c.op;
          }
        }
  }
}

}  // namespace
}  // namespace tapedeck
