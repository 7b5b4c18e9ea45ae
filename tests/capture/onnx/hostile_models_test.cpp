// Models that are damaged, absurd or made to harm: each is a typed error that names the place, or an import; never a crash.
#include <tapedeck/tests/capture/onnx/onnx_data.h>
#include <tapedeck/tests/capture/onnx/wire_model.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/engine/ir/error.h>

#include <limits>
#include <random>

namespace tapedeck {
namespace {

using wire::GraphText;
using wire::NodeText;

class HostileModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  std::string write(const std::string& bytes, const std::string& name = "m.onnx") {
    std::filesystem::remove(folder.file(name));  // some file systems wait for the disk when a file is written over
    write_all(folder.file(name), bytes);
    return folder.file(name);
  }
  OnnxImport import(const std::string& bytes, const OnnxOptions& options = {}) { return import_onnx(write(bytes), options); }
  // The message of the ParseError that the model is; empty if it is none.
  std::string fault(const std::string& bytes, const OnnxOptions& options = {}) {
    try {
      import(bytes, options);
    } catch (const ParseError& e) {
      return e.what();
    }
    return {};
  }
  std::string fault(const NodeText& node, const std::vector<std::string>& initializers = {}) {
    return fault(
        wire::model(wire::graph({{wire::node(node)}, {wire::value("x", {2, 3})}, {wire::value("y", {})}, initializers})));
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
  }
  TemporaryFolder folder;
};

TEST_F(HostileModel, IsAnErrorWhereItIsCutOff) {
  const std::string whole = read_all(onnx_models() + "/mlp_dropout/model.onnx");
  EXPECT_EQ(fault(whole), "");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const std::string message = fault(whole.substr(0, size));
    EXPECT_NE(message, "") << "the first " << size << " bytes are a model";
  }
}

TEST_F(HostileModel, IsAnErrorOrAnImportWhereBytesAreFlipped) {
  const std::uint32_t seed = 20261126;
  std::mt19937 random(seed);
  for (const char* name : {"mlp_dropout", "bilstm_opset14", "transformer"}) {
    const std::string whole = read_all(onnx_models() + "/" + name + "/model.onnx");
    for (int i = 0; i < 60; ++i) {
      std::string bytes = whole;
      for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
      try {
        import(bytes);
      } catch (const Error&) {
        continue;
      } catch (const std::bad_alloc&) {
        ADD_FAILURE() << name << ", seed " << seed << ", mutation " << i << ": memory ran out";
      }
    }
  }
}

TEST_F(HostileModel, IsAnErrorWhereItIsNoModel) {
  EXPECT_THROW(import_onnx(folder.file("missing.onnx")), FileError);
  EXPECT_THROW(import_onnx(folder.file("")), FileError);
  EXPECT_NE(fault("PK\x03\x04 a zip"), "");
  expect_in(fault(wire::number(1, 9)), "it has no graph");
  expect_in(fault(wire::number(1, 9) + wire::bytes(7, wire::graph({{}, {}, {}}))), "opset");
}

TEST_F(HostileModel, NamesTheNodeAndTheFault) {
  expect_in(fault({"Relux", {"x"}, {"y"}}), "(Relux)");
  expect_in(fault({"Relux", {"x"}, {"y"}}), "ONNX has no such op");
  expect_in(fault({"QuantizeLinear", {"x", "x"}, {"y"}}), "quantised models");
  expect_in(fault({"Relu", {"x"}, {"y"}, {}, "com.microsoft"}), "com.microsoft");
  expect_in(fault({"Relu", {"nothing"}, {"y"}}), "'nothing'");
  expect_in(fault({"Add", {"x"}, {"y"}}), "operand 1 is missing");
  expect_in(fault({"Relu", {"x"}, {"y"}, {wire::integer("speed", 3)}}), "'speed' is not known");
  expect_in(fault({"Softmax", {"x"}, {"y"}, {wire::text("axis", "last")}}), "'axis' must be an integer");
  expect_in(fault({"Softmax", {"x"}, {"y"}, {wire::integer("axis", 9)}}), "no axis 9");
  expect_in(fault({"Transpose", {"x"}, {"y"}, {wire::integers("perm", {0, 0})}}), "(Transpose)");
  expect_in(fault({"MatMul", {"x", "x"}, {"y"}}), "[matmul]");
}

TEST_F(HostileModel, WithACycleIsAnError) {
  expect_in(fault({"Relu", {"y"}, {"y"}}), "'y'");
  const std::string cycle =
      wire::model(wire::graph({{wire::node({"Add", {"x", "b"}, {"a"}}), wire::node({"Relu", {"a"}, {"b"}})},
                               {wire::value("x", {2})},
                               {wire::value("b", {2})}}));
  expect_in(fault(cycle), "'b'");
  const std::string twice = wire::model(wire::graph({{wire::node({"Relu", {"x"}, {"y"}}), wire::node({"Neg", {"x"}, {"y"}})},
                                                     {wire::value("x", {2})},
                                                     {wire::value("y", {2})}}));
  expect_in(fault(twice), "computed twice");
}

TEST_F(HostileModel, WithHugeSizesIsAnErrorAndTakesNoMemory) {
  const std::int64_t huge = std::int64_t{1} << 40, most = std::int64_t{1} << 62;
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{huge, huge}, {most, 4}, {-1}, std::vector<std::int64_t>(9, 1)})
    EXPECT_NE(fault(wire::model(wire::graph({{}, {}, {wire::value("w", {})}, {wire::tensor("w", sizes, 1, "")}}))), "");
  const auto constant = [&](const std::vector<std::int64_t>& values) {
    return std::vector<std::string>{wire::int64s("s", values)};
  };
  EXPECT_NE(fault({"Expand", {"x", "s"}, {"y"}}, constant({huge, huge, 2, 3})), "");
  EXPECT_NE(fault({"Tile", {"x", "s"}, {"y"}}, constant({most, most})), "");
  EXPECT_NE(fault({"Reshape", {"x", "s"}, {"y"}}, constant({most, 4})), "");
  EXPECT_NE(fault({"Reshape", {"x", "s"}, {"y"}}, constant({-1, -1})), "");
  EXPECT_NE(fault({"ConstantOfShape", {"s"}, {"y"}}, constant({huge, huge})), "");
  EXPECT_NE(fault({"Pad", {"x", "s"}, {"y"}}, constant({most, most, most, most})), "");
  EXPECT_NE(fault({"Pad", {"x", "s"}, {"y"}}, constant({-5, 0, 0, 0})), "");
  EXPECT_NE(fault({"Resize", {"x", "", "", "s"}, {"y"}, {wire::text("mode", "cubic")}}, constant({most, most})), "");
  EXPECT_NE(fault({"Unsqueeze", {"x", "s"}, {"y"}}, constant({0, 0})), "");
}

// The results of these nodes are known, and they would have terabytes.
TEST_F(HostileModel, WithHugeKnownResultsCopiesNoneOfThem) {
  const std::int64_t many = std::int64_t{1} << 20;
  const auto import_of = [&](const std::vector<NodeText>& nodes, const std::vector<std::int64_t>& values) {
    GraphText g{{}, {wire::value("x", {2})}, {wire::value("y", {2}), wire::value("big", {})}, {}};
    for (const NodeText& node : nodes) g.nodes.push_back(wire::node(node));
    g.nodes.push_back(wire::node({"Relu", {"x"}, {"y"}}));
    g.initializers = {wire::int64s("s", values), wire::tensor("one", {1, 1}, 1, std::string(4, '\0'))};
    return import(wire::model(wire::graph(g)), {.abstract = true});
  };
  EXPECT_EQ(import_of({{"Expand", {"one", "s"}, {"big"}}}, {many, many}).file.captured.outputs.size(), 2U);
  EXPECT_EQ(import_of({{"Tile", {"one", "s"}, {"big"}}}, {many, many}).file.captured.outputs.size(), 2U);
}

TEST_F(HostileModel, WithNumbersThatNoAttributeMayHaveIsAnError) {
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const auto nodes = [&](const NodeText& node, const std::vector<std::string>& initializers) {
    const GraphText g{{wire::node(node)}, {wire::value("x", {3, 2, 4})}, {wire::value("y", {})}, initializers};
    return fault(wire::model(wire::graph(g)));
  };
  expect_in(nodes({"CenterCropPad", {"x", "s"}, {"y"}}, {wire::int64s("s", {least, 1, 1})}), "must not be negative");
  expect_in(nodes({"ReverseSequence", {"x", "s"}, {"y"}, {wire::integer("time_axis", most), wire::integer("batch_axis", 1)}},
                  {wire::int64s("s", {1, 1})}),
            "must be 0 and 1");
  const std::vector<std::string> weights = {wire::tensor("w", {1, 16, 4}, 1, std::string(256, '\0')),
                                            wire::tensor("r", {1, 16, 4}, 1, std::string(256, '\0'))};
  EXPECT_EQ(nodes({"LSTM", {"x", "w", "r"}, {"y"}, {wire::integer("hidden_size", 4)}}, weights), "");
  expect_in(nodes({"LSTM", {"x", "w", "r"}, {"y"}, {wire::integer("hidden_size", most)}}, weights), "do not fit");
}

// The places of the elements of the result follow from the operand `roi`, which may hold any numbers.
TEST_F(HostileModel, WithPlacesFarOutsideOfItsOperandIsAnError) {
  const auto reals = [](const std::string& name, const std::vector<float>& values) {
    return wire::tensor(name, {static_cast<std::int64_t>(values.size())}, 1,
                        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  };
  for (const char* mode : {"nearest", "linear"})
    for (const float start : {1e30F, -1e30F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const NodeText resize = {"Resize",
                               {"x", "roi", "", "sizes"},
                               {"y"},
                               {wire::text("mode", mode), wire::text("coordinate_transformation_mode", "tf_crop_and_resize")}};
      expect_in(fault(resize, {reals("roi", {0, start, 1, 1}), wire::int64s("sizes", {2, 5})}), "too far outside");
    }
}

// The sizes of an initializer whose type Tapedeck lacks are never multiplied. A fuzzer found a product beyond 64 bits.
TEST_F(HostileModel, WithHugeSizesOfATypeThatIsNotSupportedIsAnError) {
  constexpr int kText = 8;
  const std::string huge = wire::tensor("texts", {std::int64_t{1} << 40, std::int64_t{1} << 40, 105}, kText, "");
  expect_in(fault({"Relu", {"x"}, {"y"}}, {huge}), "'texts' has elements of type string");
}

TEST_F(HostileModel, WithAbsurdAttributesIsAnError) {
  const auto conv = [&](std::vector<std::string> attributes) {
    const GraphText g{{wire::node({"Conv", {"x", "w"}, {"y"}, std::move(attributes)})},
                      {wire::value("x", {1, 2, 5, 5}), wire::value("w", {2, 2, 3, 3})},
                      {wire::value("y", {})}};
    return fault(wire::model(wire::graph(g)));
  };
  EXPECT_EQ(conv({}), "");
  for (const char* list : {"strides", "dilations"})
    for (const std::vector<std::int64_t>& values : {std::vector<std::int64_t>{0, 1}, {-1, 1}, {1}, {1, std::int64_t{1} << 40}})
      EXPECT_NE(conv({wire::integers(list, values)}), "") << list;
  EXPECT_NE(conv({wire::integers("pads", {-1, 0, 0, 0})}), "");
  EXPECT_NE(conv({wire::integers("pads", {1, 1})}), "");
  EXPECT_NE(conv({wire::integer("group", 0)}), "");
  EXPECT_NE(conv({wire::integer("group", -3)}), "");
  EXPECT_NE(conv({wire::text("auto_pad", "MAYBE")}), "");
  EXPECT_NE(conv({wire::integer("group", 1), wire::integer("group", 1)}), "");
}

TEST_F(HostileModel, ReadsNoExternalDataOutsideItsFolder) {
  const auto with = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    return wire::model(wire::graph({{wire::node({"Add", {"x", "w"}, {"y"}})},
                                    {wire::value("x", {2})},
                                    {wire::value("y", {2})},
                                    {wire::external("w", {2}, entries)}}));
  };
  write("12345678", "w.bin");
  EXPECT_EQ(fault(with({{"location", "w.bin"}})), "");
  EXPECT_EQ(fault(with({{"location", "./w.bin"}, {"offset", "0"}, {"length", "8"}})), "");
  const TemporaryFolder outside;
  std::ofstream(outside.file("secret")) << "12345678";
  std::filesystem::create_symlink(outside.file("secret"), folder.file("link"));
  std::filesystem::create_directory_symlink(std::filesystem::path(outside.file("secret")).parent_path(), folder.file("folder"));
  for (const std::string& location : {outside.file("secret"), std::string("../secret"), std::string("a/../../secret"),
                                      std::string("link"), std::string("folder/secret"), std::string("")})
    expect_in(fault(with({{"location", location}})), "not in the folder of the model");
  EXPECT_NE(fault(with({{"length", "8"}})), "");
  EXPECT_NE(fault(with({{"location", "w.bin"}, {"length", "4"}})), "");
  EXPECT_NE(fault(with({{"location", "w.bin"}, {"offset", "-1"}})), "");
  EXPECT_NE(fault(with({{"location", "w.bin"}, {"offset", "99999999999999999999"}})), "");
  EXPECT_THROW(import(with({{"location", "w.bin"}, {"offset", "4"}})), FileError);
  EXPECT_THROW(import(with({{"location", "missing"}})), FileError);
  EXPECT_THROW(import(with({{"location", "."}})), FileError);
}

std::string function(const std::string& name, const std::vector<NodeText>& nodes) {
  std::string text = wire::bytes(1, name) + wire::bytes(4, "a") + wire::bytes(5, "b") + wire::bytes(10, "mine");
  for (const NodeText& n : nodes) text += wire::bytes(7, wire::node(n));
  return wire::bytes(25, text);
}

// A node If whose branches call the functions; without a domain these are ops.
NodeText branches_that_call(const std::string& one, const std::string& other, const std::string& domain = "mine") {
  const auto branch = [](const std::string& name, const std::string& of) {
    return wire::graph({{wire::node({name, {"a"}, {"r"}, {}, of})}, {}, {wire::value("r", {2})}});
  };
  return {"If",
          {"c"},
          {"b"},
          {wire::graph_in("then_branch", branch(one, "mine")), wire::graph_in("else_branch", branch(other, domain))}};
}

TEST_F(HostileModel, WithFunctionsThatCallThemselvesInBranchesIsAnError) {
  const std::string graph =
      wire::graph({{wire::node({"F0", {"x"}, {"y"}, {}, "mine"})}, {wire::value("x", {2})}, {wire::value("y", {2})}});
  if (test::stride(2) == 1)  // a million nodes take a sanitizer ten seconds
    expect_in(fault(wire::model(graph, 20, function("F0", {branches_that_call("F0", "F0")}))), "its functions");
  std::string chain;  // each of the 3000 functions calls the next in one branch, so that there is one more graph on each level
  for (int i = 0; i < 3000; ++i)
    chain += function("F" + std::to_string(i), {branches_that_call("F" + std::to_string(i + 1), "Relu", "")});
  expect_in(fault(wire::model(graph, 20, chain)), "graphs are inside each other");
}

TEST_F(HostileModel, WithExternalDataInAnAttributeReadsThatFile) {
  const auto with = [&](const std::string& tensor) {
    const std::string attribute = wire::bytes(1, "value") + wire::bytes(5, tensor) + wire::number(20, 4);
    return wire::model(wire::graph({{wire::node({"Constant", {}, {"w"}, {attribute}}), wire::node({"Add", {"x", "w"}, {"y"}})},
                                    {wire::value("x", {2})},
                                    {wire::value("y", {2})}}));
  };
  write("12345678", "w.bin");
  EXPECT_EQ(fault(with(wire::external("w", {2}, {{"location", "w.bin"}}))), "");
  EXPECT_THROW(import(with(wire::external("w", {1 << 20}, {{"location", "w.bin"}}))), FileError);
  expect_in(fault(with(wire::external("w", {2}, {{"location", "/etc/hostname"}}))), "not in the folder of the model");
}

TEST_F(HostileModel, WithLoopsInLoopsTakesNoTimeWithoutABound) {
  std::string body = wire::graph({{wire::node({"Relu", {"v"}, {"v2"}}), wire::node({"Not", {"c"}, {"c2"}})},
                                  {wire::value("i", {}, 7), wire::value("c", {}, 9), wire::value("v", {2})},
                                  {wire::value("c2", {}, 9), wire::value("v2", {2})}});
  for (int level = 0; level < 12; ++level)
    body = wire::graph({{wire::node({"Loop", {"n", "", "v"}, {"v2"}, {wire::graph_in("body", body)}}),
                         wire::node({"ReduceMax", {"v2"}, {"m"}, {wire::integer("keepdims", 0)}}),
                         wire::node({"Greater", {"m", "z"}, {"c2"}})},
                        {wire::value("i", {}, 7), wire::value("c", {}, 9), wire::value("v", {2})},
                        {wire::value("c2", {}, 9), wire::value("v2", {2})}});
  const std::string zero(4, '\0');
  const std::string model = wire::model(
      wire::graph({{wire::node({"Loop", {"n", "", "x"}, {"y"}, {wire::graph_in("body", body)}})},
                   {wire::value("x", {2})},
                   {wire::value("y", {2})},
                   {wire::tensor("n", {}, 7, std::string("\3\0\0\0\0\0\0\0", 8)), wire::tensor("z", {}, 1, zero)}}));
  EXPECT_EQ(fault(model), "");
}

TEST_F(HostileModel, WithAbsurdWindowsIsAnError) {
  const auto image = [&](const NodeText& n, const std::vector<std::string>& initializers = {}) {
    return fault(
        wire::model(wire::graph({{wire::node(n)}, {wire::value("x", {1, 3, 4, 4})}, {wire::value("y", {})}, initializers})));
  };
  EXPECT_NE(image({"LRN", {"x"}, {"y"}, {wire::integer("size", 1 << 30)}}), "");
  EXPECT_EQ(image({"LRN", {"x"}, {"y"}, {wire::integer("size", 4)}}), "");
  const float tiny[] = {1, 1, 1e-9F, 1};
  EXPECT_NE(image({"Resize", {"x", "", "s"}, {"y"}, {wire::text("mode", "linear"), wire::integer("antialias", 1)}},
                  {wire::tensor("s", {4}, 1, {reinterpret_cast<const char*>(tiny), sizeof tiny})}),
            "");
  EXPECT_NE(image({"SpaceToDepth", {"x"}, {"y"}, {wire::integer("blocksize", std::int64_t{1} << 40)}}), "");
  EXPECT_NE(
      image({"Pad", {"x"}, {"y"}, {wire::integers("pads", {std::numeric_limits<std::int64_t>::min(), 0, 0, 0, 0, 0, 0, 0})}}),
      "");
}

TEST_F(HostileModel, WithFunctionsThatCallThemselvesIsAnError) {
  const std::string graph =
      wire::graph({{wire::node({"F", {"x"}, {"y"}, {}, "mine"})}, {wire::value("x", {2})}, {wire::value("y", {2})}});
  expect_in(fault(wire::model(graph, 20, function("F", {{"F", {"a"}, {"b"}, {}, "mine"}}))), "without an end");
  // Each function calls the next one twice.
  std::string bomb = function("F", {{"F1", {"a"}, {"t"}, {}, "mine"}, {"F1", {"t"}, {"b"}, {}, "mine"}});
  for (int i = 1; i < 30; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    bomb += function("F" + std::to_string(i), {{next, {"a"}, {"t"}, {}, "mine"}, {next, {"t"}, {"b"}, {}, "mine"}});
  }
  if (test::stride(2) == 1) expect_in(fault(wire::model(graph, 20, bomb)), "1,000,000 nodes");
  const OnnxImport twice = import(wire::model(graph, 20, function("F", {{"Relu", {"a"}, {"t"}}, {"Neg", {"t"}, {"b"}}})));
  EXPECT_EQ(twice.file.captured.node_count(), 2);
}

TEST_F(HostileModel, WithTooManyGraphsInGraphsIsAnError) {
  std::string inner = wire::graph({{wire::node({"Relu", {"x"}, {"y"}})}, {}, {wire::value("y", {2})}});
  const std::string otherwise = inner;
  for (int i = 0; i < 40; ++i)
    inner = wire::graph(
        {{wire::node({"If", {"c"}, {"y"}, {wire::graph_in("then_branch", inner), wire::graph_in("else_branch", otherwise)}})},
         {},
         {wire::value("y", {2})}});
  const std::string node =
      wire::node({"If", {"c"}, {"y"}, {wire::graph_in("then_branch", inner), wire::graph_in("else_branch", otherwise)}});
  EXPECT_NE(
      fault(wire::model(wire::graph({{node}, {wire::value("x", {2}), wire::value("c", {}, 9)}, {wire::value("y", {2})}}))), "");
}

TEST_F(HostileModel, LeavesTheSizesOpenThatNobodyGave) {
  const std::string open = wire::bytes(1, wire::bytes(2, "batch"));
  const std::string input =
      wire::bytes(1, "x") + wire::bytes(2, wire::bytes(1, wire::number(1, 1) + wire::bytes(2, open + wire::bytes(1, ""))));
  const std::string bytes = wire::model(wire::graph({{wire::node({"Relu", {"x"}, {"y"}})}, {input}, {wire::value("y", {})}}));
  try {
    import(bytes);
    ADD_FAILURE() << "it has no sizes";
  } catch (const UsageError& e) {
    expect_in(e.what(), "batch=8");
    expect_in(e.what(), "x.1=8");
  }
  EXPECT_EQ(import(bytes, {.dims = {{"batch", 4}, {"x.1", 5}}}).file.captured.values[0].type, (Type{DType::f32, {4, 5}}));
  EXPECT_THROW(import(bytes, {.dims = {{"batch", 4}, {"x.1", 5}, {"z", 1}}}), UsageError);
  EXPECT_THROW(import(bytes, {.dims = {{"batch", -4}, {"x.1", 5}}}), UsageError);
}

TEST_F(HostileModel, TakesNoOptionsThatDoNotFit) {
  const std::string model = onnx_models() + "/mlp_dropout/model.onnx";
  OnnxOptions train;
  train.train = true;
  EXPECT_THROW(import_onnx(model, train), UsageError);
  train.loss = "cross_entropi";
  EXPECT_THROW(import_onnx(model, train), UsageError);
  train.loss = "mse";
  train.optimizer = "sgdd";
  EXPECT_THROW(import_onnx(model, train), UsageError);
  EXPECT_THROW(import_onnx(model, {.parameters = {"nothing*"}}), UsageError);
}

}  // namespace
}  // namespace tapedeck
