// Loops and branches that are exported and imported again.
#include <tapedeck/tests/capture/onnx/there_and_back.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <functional>
#include <set>

namespace tapedeck {
namespace {

using Inputs = std::map<std::string, Tensor>;

Tensor counted(const Shape& shape, double from, double step) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>(from + step * static_cast<double>(i)));
  return from_vector(values, shape);
}

class OnnxExportControlTest : public OnnxExportTest {
 protected:
  // Records the function on its inputs x0, x1, ...; the results are y0, y1, ...
  static TapeFile recorded(const std::function<Tensors(const Tensors&)>& fn, const Tensors& inputs) {
    Capture capture;
    Tensors xs;
    for (const Tensor& x : inputs) xs.push_back(capture.input("x" + std::to_string(xs.size()), x));
    const Tensors results = fn(xs);
    for (std::size_t i = 0; i < results.size(); ++i) capture.output("y" + std::to_string(i), results[i]);
    return tape_of(capture.finish());
  }
  static Inputs named(const Tensors& inputs) {
    Inputs all;
    for (const Tensor& x : inputs) all["x" + std::to_string(all.size())] = x;
    return all;
  }
  // The imported graph, and the graph that comes from there and back once more, compute what the function computes eagerly.
  // Unless there are Loops, the second graph is the very same: each trip adds a counter and a condition to their carried
  // values.
  void expect_same(const std::function<Tensors(const Tensors&)>& fn, const Tensors& inputs, double error = 0) {
    const TapeFile first = exported_and_imported(recorded(fn, inputs));
    const bool has_loops = ops_of_the_model().count("Loop") > 0 || inner_ops_of_the_model().count("Loop") > 0;
    const TapeFile second = exported_and_imported(first);
    expect_results(first, fn, inputs, error);
    expect_results(second, fn, inputs, error);
    if (has_loops) return;
    EXPECT_EQ(print(second.captured), print(first.captured));
  }
  static void expect_results(const TapeFile& file, const std::function<Tensors(const Tensors&)>& fn, const Tensors& inputs,
                             double error) {
    const Inputs got = run_once(file, named(inputs));
    const Tensors wanted = fn(inputs);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(difference(got.at("y" + std::to_string(i)), wanted[i], error, error), "") << "result " << i;
  }
  // Of the graphs inside nodes.
  std::map<std::string, int> inner_ops_of_the_model() const {
    std::map<std::string, int> ops;
    const onnx::Model model = onnx::read_model(path());
    std::vector<const onnx::Graph*> graphs = {&model.graph};
    while (!graphs.empty()) {
      const onnx::Graph& graph = *graphs.back();
      graphs.pop_back();
      for (const onnx::Node& node : graph.nodes) {
        if (&graph != &model.graph) ++ops[node.op];
        for (const auto& [name, a] : node.attributes)
          if (a.graph) graphs.push_back(a.graph.get());
      }
    }
    return ops;
  }
  std::map<std::string, int> ops_of_the_model() const {
    std::map<std::string, int> ops;
    for (const onnx::Node& node : onnx::read_model(path()).graph.nodes) ++ops[node.op];
    return ops;
  }
};

// ---- branches ----

Tensors branches(const Tensors& in) {
  const Tensor w = in[1];
  return cond(
      greater(sum(in[0]), 0),
      [&](const Tensors& x) {
        return Tensors{x[0] * w, add(x[0], 1), x[0], w};
      },
      [&](const Tensors& x) {
        const Tensor y = exp(x[0]);
        return Tensors{y, y, x[0], full({3}, 2)};
      },
      {in[0]});
}

TEST_F(OnnxExportControlTest, ABranchIsAnIf) {
  expect_same(branches, {counted({3}, 1, 1), counted({3}, 4, 1)});
  expect_same(branches, {counted({3}, -5, 1), counted({3}, 4, 1)});
  EXPECT_EQ(ops_of_the_model().at("If"), 1);
}

TEST_F(OnnxExportControlTest, EachResultOfABranchIsANodeOfIts) {
  const Tensors inputs = {counted({3}, 1, 1), counted({3}, 4, 1)};
  export_onnx(path(), recorded(branches, inputs));
  for (const onnx::Node& node : onnx::read_model(path()).graph.nodes) {
    for (const auto& [name, a] : node.attributes) {
      if (!a.graph) continue;
      EXPECT_TRUE(a.graph->inputs.empty());
      std::set<std::string> made, given;
      for (const onnx::Node& inner : a.graph->nodes) made.insert(inner.outputs.begin(), inner.outputs.end());
      for (const onnx::ValueInfo& v : a.graph->outputs) {
        EXPECT_TRUE(given.insert(v.name).second) << v.name;
        EXPECT_EQ(made.count(v.name), 1u) << v.name;
      }
    }
  }
}

// ---- scan ----

Tensors cell(const Tensors& in, const LoopOptions& options) {
  const Tensor w = in[2];
  const LoopResult r = scan(
      [&](const Tensors& c) {
        const Tensor h = tanh(c[1] * w + c[0]);
        return Tensors{h, h * h, greater(h, 0)};
      },
      {in[1]}, {in[0]}, {}, options);
  return {r.carried[0], r.stacked[0], r.stacked[1]};
}

TEST_F(OnnxExportControlTest, AScanIsAScanInBothDirections) {
  const Tensors inputs = {counted({5, 2}, -1, 0.3), counted({2}, 0.5, 1), counted({2}, 0.7, 0.2)};
  for (const bool reverse : {false, true}) {
    SCOPED_TRACE(reverse);
    expect_same([&](const Tensors& in) { return cell(in, {.reverse = reverse}); }, inputs);
    EXPECT_EQ(ops_of_the_model(), (std::map<std::string, int>{{"Scan", 1}}));
  }
}

TEST_F(OnnxExportControlTest, AScanOfNothingCountsItsPasses) {
  const std::int64_t seven = 7;
  const bool yes = true;
  const Tensor number = from_bytes({DType::i64, {}}, &seven), truth = from_bytes({DType::boolean, {}}, &yes);
  const auto halves = [&](const Tensors& in) {
    const LoopResult r = scan(
        [](const Tensors& c) {
          return Tensors{c[0] * 0.5, add(c[1], c[3]), logical_not(c[2]), c[0]};
        },
        {in[0], in[1], in[2]}, {}, {in[1]}, {.max_trips = 4});
    return Tensors{r.carried[0], r.carried[1], r.carried[2], r.stacked[0]};
  };
  expect_same(halves, {counted({2}, 1, 1), number, truth});
}

// The number of the pass, which only the text of a graph shows: 0, 1, 2 or 2, 1, 0.
TEST_F(OnnxExportControlTest, APassCanReadItsNumber) {
  for (const char* reverse : {"false", "true"}) {
    SCOPED_TRACE(reverse);
    TapeFile file;
    file.captured = parse(std::string(R"(graph g(%c: i64[], %x: i64[3]) {
  %r: i64[], %y: i64[3] = scan(%c, %x) {carried=1, scanned=1, reverse=)") +
                          reverse + R"(} (%i: i64[], %c: i64[], %s: i64[]) {
    %t: i64[] = mul(%c, %s)
    %n: i64[] = add(%t, %i)
    return %n, %i
  }
  return r=%r, y=%y
})");
    const std::int64_t c = 1;
    const std::vector<std::int64_t> x = {2, 3, 5};
    const Inputs inputs = {{"c", from_bytes({DType::i64, {}}, &c)}, {"x", from_bytes({DType::i64, {3}}, x.data())}};
    const Inputs got = run_once(exported_and_imported(file), inputs);
    const bool back = std::string(reverse) == "true";
    EXPECT_EQ(numbers(got.at("r")),
              std::vector<double>{back ? ((1 * 5 + 2.0) * 3 + 1) * 2 + 0 : ((1 * 2 + 0.0) * 3 + 1) * 5 + 2});
    EXPECT_EQ(numbers(got.at("y")), (std::vector<double>{0, 1, 2}));
  }
}

TEST_F(OnnxExportControlTest, AScanWithoutPassesIsNoNode) {
  expect_same([](const Tensors& in) { return cell(in, {}); }, {counted({0, 2}, 0, 0), counted({2}, 1, 1), counted({2}, 1, 1)});
  EXPECT_EQ(ops_of_the_model().count("Scan"), 0u);
}

// ---- while ----

Tensors until_large(const Tensors& in, std::int64_t most, double bound) {
  const Tensor w = in[1];
  const LoopResult r = while_loop([=](const Tensors& c) { return less(sum(c[0]), bound); },
                                  [=](const Tensors& c) {
                                    Tensors next = {c[0] * w};
                                    if (most >= 0) next.push_back(neg(c[0]));
                                    return next;
                                  },
                                  {in[0]}, {}, {.max_trips = most});
  Tensors results = {r.carried[0], r.trips};
  results.insert(results.end(), r.stacked.begin(), r.stacked.end());
  return results;
}

TEST_F(OnnxExportControlTest, AWhileIsALoop) {
  const Tensors inputs = {counted({3}, 1, 0.5), counted({3}, 1.5, 0.25)};
  struct {
    std::int64_t most;
    double bound;
  } const cases[] = {{-1, 100}, {-1, 0}, {6, 20}, {3, 1e9}, {6, 0}, {0, 20}};
  for (const auto& c : cases) {
    SCOPED_TRACE(std::to_string(c.most) + " passes at most, below " + std::to_string(c.bound));
    expect_same([&](const Tensors& in) { return until_large(in, c.most, c.bound); }, inputs);
  }
}

// ONNX computes the condition once more than Tapedeck, at a place that the table does not have.
TEST_F(OnnxExportControlTest, AConditionReadsNothingBehindTheBound) {
  TapeFile file;
  file.captured = parse(R"(graph g(%x: f32[], %table: bool[3]) {
  %n: i64[], %y: f32[] = while(%x, %table) {carried=1, trips=3} (%i: i64[], %c: f32[], %t: bool[3]) {
    %place: i64[1] = reshape(%i) {shape=[1]}
    %at: bool[1] = index_select(%t, %place) {axis=0}
    %goes: bool[] = reshape(%at) {shape=[]}
    return %goes
  } (%i: i64[], %c: f32[], %t: bool[3]) {
    %d: f32[] = add(%c, %c)
    return %d
  }
  return n=%n, y=%y
})");
  const float x = 1;
  for (const std::vector<unsigned char>& table :
       {std::vector<unsigned char>{1, 1, 1}, std::vector<unsigned char>{1, 0, 1}, std::vector<unsigned char>{0, 0, 0}}) {
    const Inputs inputs = {{"x", from_bytes({DType::f32, {}}, &x)}, {"table", from_bytes({DType::boolean, {3}}, table.data())}};
    const Inputs wanted = run_once(file, inputs), got = run_once(exported_and_imported(file), inputs);
    EXPECT_EQ(numbers(got.at("n")), numbers(wanted.at("n")));
    EXPECT_EQ(numbers(got.at("y")), numbers(wanted.at("y")));
  }
}

// ---- regions in regions ----

Tensors loops_in_loops(const Tensors& in) {
  const Tensor w = in[1];
  const auto inner = [=](const Tensor& x) {
    return while_loop([](const Tensors& c) { return less(max(c[0]), 2); },
                      [=](const Tensors& c) {
                        return Tensors{cond(
                            greater(sum(c[0]), 1), [=](const Tensors& v) { return Tensors{v[0] + w * x}; },
                            [=](const Tensors& v) { return Tensors{v[0] + w}; }, {c[0]})[0]};
                      },
                      {x}, {}, {.max_trips = 4})
        .carried[0];
  };
  const LoopResult r = scan(
      [=](const Tensors& c) {
        const Tensor y = tanh(inner(c[0]) + c[1]);
        return Tensors{y, y};
      },
      {in[0]}, {in[2]}, {}, {});
  return {r.carried[0], r.stacked[0]};
}

TEST_F(OnnxExportControlTest, LoopsInLoopsComputeTheSame) {
  expect_same(loops_in_loops, {counted({2}, 0.1, 0.2), counted({2}, 0.8, 0.3), counted({3, 2}, -0.5, 0.2)});
}

// Branches inside each other: both of a branch at depth d are x + 1 at depth 0.
Graph branches_in_branches(int depth) {
  std::string text = "return %x0";
  for (int d = 0; d < depth; ++d) {
    const std::string in = std::to_string(d), out = std::to_string(d + 1);
    const std::string plain = "(%x" + in + ": f32[], %p" + in + ": bool[]) {\n%y: f32[] = neg(%x" + in + ")\nreturn %y\n}";
    const std::string body = d == 0 ? "(%x0: f32[], %p0: bool[]) {\n%y: f32[] = exp(%x0)\nreturn %y\n}"
                                    : "(%x" + in + ": f32[], %p" + in + ": bool[]) {\n" + text + "\n}";
    text = "%z: f32[] = cond(%p" + out + ", %x" + out + ", %p" + out + ") " + body + " " + plain + "\nreturn %z";
  }
  const std::string last = std::to_string(depth);
  return parse("graph g(%x" + last + ": f32[], %p" + last + ": bool[]) {\n" +
               text.replace(text.rfind("return %z"), 9, "return z=%z") + "\n}");
}

TEST_F(OnnxExportControlTest, RegionsLieInRegionsAsDeepAsReadersTakeThem) {
  TapeFile file;
  file.captured = branches_in_branches(30);
  const float x = 1;
  const bool yes = true;
  const Inputs inputs = {{"x30", from_bytes({DType::f32, {}}, &x)}, {"p30", from_bytes({DType::boolean, {}}, &yes)}};
  const Inputs got = run_once(exported_and_imported(file), inputs);
  EXPECT_NEAR(numbers(got.at("z"))[0], std::exp(1.0), 1e-6);
  file.captured = branches_in_branches(31);
  EXPECT_EQ(refusal(folder_.file("deep.onnx"), file),
            "cannot export: no counterpart of 'cond' (node 0: more than 30 graphs are inside each other)");
}

// ---- gradients ----

Tensors leaves(Tensors inputs) {
  for (Tensor& x : inputs) x.requires_grad(true);
  return inputs;
}

// The function and the gradients of its first result by its operands.
std::function<Tensors(const Tensors&)> with_gradients(const std::function<Tensors(const Tensors&)>& fn) {
  return [fn](const Tensors& in) {
    Tensors results = fn(in);
    for (const Tensor& d : gradients({sum(square(results[0]))}, in))
      if (d.defined()) results.push_back(d);
    return results;
  };
}

TEST_F(OnnxExportControlTest, GradientsOfScansComputeTheSame) {
  const Tensors inputs = leaves({counted({5, 2}, -1, 0.3), counted({2}, 0.5, 1), counted({2}, 0.7, 0.2)});
  for (const bool reverse : {false, true}) {
    for (const std::int64_t every : {std::int64_t{0}, std::int64_t{2}, kCheckpointSqrt, kCheckpointLog}) {
      SCOPED_TRACE(std::to_string(every) + (reverse ? " reverse" : ""));
      const auto fn = [&](const Tensors& in) { return cell(in, {.checkpoint_every = every, .reverse = reverse}); };
      expect_same(with_gradients(fn), inputs, 1e-6);
      EXPECT_EQ(ops_of_the_model().at("Scan"), every == 0 ? 2 : 3);  // the Loops came back as scans
    }
  }
}

TEST_F(OnnxExportControlTest, GradientsOfWhilesWithABoundComputeTheSame) {
  const Tensors inputs = leaves({counted({3}, 1, 0.5), counted({3}, 1.5, 0.25)});
  for (const double bound : {20.0, 1e9, 0.0})
    expect_same(with_gradients([&](const Tensors& in) { return until_large(in, 5, bound); }), inputs, 1e-6);
}

// The model has the values that the passes keep as a result whose size only a run knows.
TEST_F(OnnxExportControlTest, AGradientOfAWhileWithoutABoundIsNotImported) {
  const Tensors inputs = leaves({counted({3}, 1, 0.5), counted({3}, 1.5, 0.25)});
  export_onnx(path(), recorded(with_gradients([&](const Tensors& in) { return until_large(in, -1, 20); }), inputs));
  try {
    import_onnx(path());
    ADD_FAILURE() << "it was imported";
  } catch (const ParseError& e) {
    EXPECT_NE(std::string(e.what()).find("known only when the model runs"), std::string::npos) << e.what();
  }
}

TEST_F(OnnxExportControlTest, GradientsOfBranchesComputeTheSame) {
  const auto fn = [](const Tensors& in) {
    return cond(
        greater(sum(in[0]), 0), [&](const Tensors& x) { return Tensors{x[0] * in[1]}; },
        [&](const Tensors& x) { return Tensors{exp(x[0] * in[1]) * in[1]}; }, {in[0]});
  };
  expect_same(with_gradients(fn), leaves({counted({3}, 1, 1), counted({3}, 0.4, 0.1)}), 1e-6);
  expect_same(with_gradients(fn), leaves({counted({3}, -5, 1), counted({3}, 0.4, 0.1)}), 1e-6);
}

TEST_F(OnnxExportControlTest, GradientsOfLoopsInLoopsComputeTheSame) {
  expect_same(with_gradients(loops_in_loops),
              leaves({counted({2}, 0.1, 0.2), counted({2}, 0.8, 0.3), counted({3, 2}, -0.5, 0.2)}), 1e-6);
}

TEST_F(OnnxExportControlTest, AGradientThatRunsItsLoopAgainMayMakeNoPass) {
  const Tensors inputs = leaves({counted({3}, 10, 0.5), counted({3}, 1.5, 0.25)});
  const TapeFile file = recorded(with_gradients([&](const Tensors& in) { return until_large(in, 5, 0); }), inputs);
  const Inputs got = run_once(exported_and_imported(file), named(inputs));
  EXPECT_EQ(numbers(got.at("y3")), (std::vector<double>{20, 21, 22}));  // 2 x
  EXPECT_EQ(numbers(got.at("y4")), (std::vector<double>{0, 0, 0}));
}

// ---- refusals ----

TEST_F(OnnxExportControlTest, OpsWithoutCounterpartInRegionsAreNamed) {
  TapeFile file;
  file.captured = parse(R"(graph g(%x: f32[2]) {
  %y: f32[2] = scan(%x) {carried=1, trips=2} (%i: i64[], %c: f32[2]) {
    %a: f32[2] = add(%c, %c)
    %b: f32[2] = lgamma(%a) [site="model.py:4"]
    return %b
  }
  return y=%y
})");
  EXPECT_EQ(refusal(path(), file), "cannot export: no counterpart of 'lgamma' (node 1, model.py:4: ONNX has no such function)");
}

TEST_F(OnnxExportControlTest, AllNodesCount) {
  const Tensors inputs = {counted({3}, 1, 1), counted({3}, 4, 1)};
  const OnnxExport result = export_onnx(path(), recorded(branches, inputs));
  std::size_t count = 0;
  for (const onnx::Node& node : onnx::read_model(path()).graph.nodes) {
    ++count;
    for (const auto& [name, a] : node.attributes)
      if (a.graph) count += a.graph->nodes.size();
  }
  EXPECT_EQ(result.nodes, static_cast<std::int64_t>(count));
}

}  // namespace
}  // namespace tapedeck
