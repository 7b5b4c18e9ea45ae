// Loops of TensorFlow and JAX: their condition compares a counter with a constant, so the import counts the trips.
#include <tapedeck/tests/capture/onnx/onnx_data.h>
#include <tapedeck/tests/capture/onnx/wire_model.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <tapedeck/engine/ir/error.h>

#include <limits>

namespace tapedeck {
namespace {

constexpr int kTripBool = 9, kTripInt64 = 7;
constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

std::string whole(const std::string& name, std::int64_t value) {
  return wire::tensor(name, {}, kTripInt64, {reinterpret_cast<const char*>(&value), 8});
}

// while (n < limit) { x = x + x; n = n + step; } from n = start, with each x stacked. `condition` is the node that gives
// `more`.
struct Loop {
  std::int64_t start = 0, step = 1, limit = 5, most = kNoBound;
  bool stacks = true;
  wire::NodeText condition = {"Less", {"n2", "limit"}, {"more"}};

  std::string bytes() const {
    wire::GraphText body;
    body.inputs = {wire::value("i", {}, kTripInt64), wire::value("c", {}, kTripBool), wire::value("n", {}, kTripInt64),
                   wire::value("x", {2})};
    body.nodes = {wire::node({"Add", {"n", "step"}, {"n2"}}), wire::node(condition), wire::node({"Add", {"x", "x"}, {"x2"}}),
                  wire::node({"Identity", {"x2"}, {"each"}})};
    body.outputs = {wire::value("more", {}, kTripBool), wire::value("n2", {}, kTripInt64), wire::value("x2", {2})};
    if (stacks) body.outputs.push_back(wire::value("each", {2}));
    std::vector<std::string> results = {"n_end", "x_end"},
                             outputs = {wire::value("n_end", {}, kTripInt64), wire::value("x_end", {2})};
    if (stacks) results.emplace_back("all"), outputs.push_back(wire::value("all", {}));
    const wire::GraphText outer = {
        {wire::node({"Less", {"start", "limit"}, {"begins"}}),
         wire::node({"Loop", {"most", "begins", "start", "x0"}, results, {wire::graph_in("body", wire::graph(body))}})},
        {wire::value("x0", {2}), wire::value("data", {}, kTripInt64)},
        outputs,
        {whole("start", start), whole("step", step), whole("limit", limit), whole("most", most)}};
    return wire::model(wire::graph(outer));
  }
};

class OnnxLoopTrips : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  TapeFile import(const Loop& loop) {
    std::ofstream(folder_.file("m.onnx"), std::ios::binary) << loop.bytes();
    return import_onnx(folder_.file("m.onnx")).file;
  }
  std::vector<Tensor> run(const Loop& loop) {
    const TapeFile file = import(loop);
    const float x[] = {1, -3};
    Executor executor = executor_of(file);
    executor.set_input(0, from_bytes({DType::f32, {2}}, x));
    executor.set_input(1, from_bytes({DType::i64, {}}, &loop.limit));
    return executor.run_and_outputs();
  }
  std::string fault(const Loop& loop) {
    try {
      import(loop);
    } catch (const ParseError& e) {
      return e.what();
    }
    return {};
  }
  // The same loop in C++.
  static void expect_like_this(const std::vector<Tensor>& got, const Loop& loop) {
    std::vector<double> x = {1, -3}, all;
    std::int64_t n = loop.start;
    for (std::int64_t trip = 0; n < loop.limit && trip < loop.most; ++trip, n += loop.step) {
      for (double& v : x) v += v;
      all.insert(all.end(), x.begin(), x.end());
    }
    EXPECT_EQ(numbers(got.at(0)), std::vector<double>{static_cast<double>(n)});
    EXPECT_EQ(numbers(got.at(1)), x);
    if (!loop.stacks) return;
    EXPECT_EQ(got.at(2).type(), (Type{DType::f32, {static_cast<std::int64_t>(all.size() / 2), 2}}));
    EXPECT_EQ(numbers(got.at(2)), all);
  }
  TemporaryFolder folder_;
};

TEST_F(OnnxLoopTrips, AreCountedWhereTheConditionComparesCounters) {
  for (const std::int64_t most : {kNoBound, std::int64_t{100}, std::int64_t{5}, std::int64_t{3}, std::int64_t{0}})
    for (const std::int64_t step : {1, 2, 7})
      for (const std::int64_t start : {0, 4, 5}) {
        SCOPED_TRACE(::testing::Message() << most << " " << step << " " << start);
        Loop loop;
        loop.most = most, loop.step = step, loop.start = start;
        expect_like_this(run(loop), loop);
      }
}

TEST_F(OnnxLoopTrips, MakeAScanWhichHasAGradient) {
  const TapeFile file = import({});
  int scans = 0, loops = 0;
  for (const Node& node : file.captured.nodes) {
    scans += std::string(node.op->name) == "scan";
    loops += std::string(node.op->name) == "while";
  }
  EXPECT_EQ(scans, 1);
  EXPECT_EQ(loops, 0);
}

TEST_F(OnnxLoopTrips, AreNotKnownWhereTheConditionReadsData) {
  Loop loop;
  loop.condition = {"Less", {"n2", "data"}, {"more"}};
  EXPECT_NE(fault(loop).find("known only when the model runs"), std::string::npos) << fault(loop);
  loop.stacks = false;
  expect_like_this(run(loop), loop);
}

TEST_F(OnnxLoopTrips, AreNotCountedWithoutAnEnd) {
  Loop loop;
  loop.limit = std::int64_t{1} << 62;
  EXPECT_NE(fault(loop).find("known only when the model runs"), std::string::npos) << fault(loop);
  loop.step = 0;
  EXPECT_NE(fault(loop).find("known only when the model runs"), std::string::npos) << fault(loop);
  loop.stacks = false;
  EXPECT_EQ(fault(loop), "");
}

}  // namespace
}  // namespace tapedeck
