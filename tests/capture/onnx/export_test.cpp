// Models that are exported and imported again: the models of other programs, the models of the zoo, and every op by itself.
#include <tapedeck/tests/capture/onnx/there_and_back.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/capture/onnx/export/export_ops.h>
#include <tapedeck/capture/onnx/export_onnx.h>
#include <tapedeck/capture/onnx/interpreter.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/text/text.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// ---- models of other programs ----

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(onnx_models()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, Tensor> inputs_of(const Graph& g, const std::string& folder) {
  const std::vector<Tensor> values = read_pbs(folder + "/inputs");
  std::map<std::string, Tensor> inputs;
  for (std::size_t i = 0; i < values.size(); ++i) inputs[g.value_name(static_cast<ValueId>(i))] = values[i];
  return inputs;
}

const char* const kDropout = "cannot export: no counterpart of 'dropout' (node ";

TEST_F(OnnxExportTest, ModelsOfOtherProgramsComputeTheSameAgain) {
  const std::map<std::string, std::string> refused = {{"mlp_dropout_train", kDropout}};
  const std::set<std::string> other_graph = {
      // Slices of constants are parts of an op there, and computed at import here.
      "bilstm",
      "bilstm_opset14",
      "keras_gru",
      "keras_lstm",
      // A batch norm of training is composed of several nodes.
      "mobilenet_like_train",
      "resnet_block_train",
      // Constants are joined and reshaped there, and computed at import here.
      "sklearn_ridge",
      "sklearn_svr",
      // Labels are chosen by places that are never negative there; a place of Gather may be.
      "sklearn_logistic",
      "sklearn_logistic_binary",
      "sklearn_mlp_binary",
      "sklearn_mlp_classifier",
  };
  for (const std::string& name : models()) {
    SCOPED_TRACE(name);
    const std::string folder = onnx_models() + "/" + name;
    OnnxOptions options;
    if (name == "resnet_block_dynamic") options.dims = {{"batch", 3}};
    const TapeFile first = import_onnx(folder + "/model.onnx", options).file;
    if (const auto it = refused.find(name); it != refused.end()) {
      EXPECT_EQ(refusal(path(), first).rfind(it->second, 0), 0u);
      continue;
    }
    const TapeFile second = exported_and_imported(first);
    const std::map<std::string, Tensor> inputs = inputs_of(first.captured, folder);
    const std::map<std::string, Tensor> wanted = run_once(first, inputs), got = run_once(second, inputs);
    ASSERT_EQ(got.size(), wanted.size());
    const double error = other_graph.count(name) > 0 ? 1e-6 : 0;
    for (const auto& [output, value] : wanted) EXPECT_EQ(difference(got.at(output), value, error, error), "") << output;
    if (other_graph.count(name) == 0)
      EXPECT_EQ(print(first.captured), print(second.captured));
    else
      EXPECT_NE(print(first.captured), print(second.captured)) << "it is the same graph now: take it off the list";
  }
}

// ---- steps of training ----

TEST_F(OnnxExportTest, StepsOfTheZooComputeTheSame) {
  // Models of each kind: all those without dropout do, but the deep ones take seconds, and round too differently for a bound.
  for (const char* name : {"lenet", "cnn", "resnet18", "mobilenet_v1", "mlp_attention", "rnn_cell"}) {
    SCOPED_TRACE(name);
    constexpr double error = 1e-4;
    const Model& model = *find_model(name);
    const TapeFile file = tape_of(record_model(model, small_options(model)));
    const TapeFile again = exported_and_imported(file);
    const std::map<std::string, Tensor> wanted = run_once(file, file.inputs), got = run_once(again, file.inputs);
    for (const auto& [output, value] : wanted) {
      ASSERT_TRUE(got.count(output)) << output;
      EXPECT_EQ(difference(got.at(output), value, error, error), "") << output;
    }
  }
}

TEST_F(OnnxExportTest, AStepWithDropoutIsRefused) {
  const Model& model = *find_model("mlp");
  EXPECT_EQ(refusal(path(), tape_of(record_model(model, small_options(model)))).rfind(kDropout, 0), 0u);
}

// ---- one op ----

TapeFile file_of_one_op(const testing::Example& e) {
  TapeFile file;
  Graph& g = file.captured;
  std::vector<ValueId> operands;
  for (const testing::Operand& o : e.operands) operands.push_back(g.add_input("x" + std::to_string(operands.size()), o.type));
  g.n_inputs = static_cast<std::int32_t>(operands.size());
  std::vector<Type> types;
  infer_types(*e.op, e.types(), e.attrs(), types);
  const NodeId node = g.add_node(*e.op, operands, e.attrs(), types);
  for (std::int32_t i = 0; i < g.nodes[static_cast<std::size_t>(node)].n_outputs; ++i) {
    g.outputs.push_back(g.nodes[static_cast<std::size_t>(node)].first_output + i);
    g.output_names.emplace_back("y" + std::to_string(i));
  }
  return file;
}

TEST_F(OnnxExportTest, EveryOpComputesTheSame) {
  std::set<std::string> refused, not_imported;
  testing::for_every_example([&](const testing::Example& e) {
    const TapeFile file = file_of_one_op(e);
    if (const std::string message = refusal(path(), file); !message.empty()) {
      EXPECT_EQ(message.rfind(std::string("cannot export: no counterpart of '") + e.op->name + "' (node 0: ", 0), 0u)
          << message;
      refused.insert(e.op->name);
      return;
    }
    std::map<std::string, Tensor> inputs;
    const std::vector<Tensor> values = testing::make_operands(e, DType::f32, 7);
    for (std::size_t i = 0; i < values.size(); ++i) inputs["x" + std::to_string(i)] = values[i];
    TapeFile again;
    try {
      again = import_onnx(path()).file;
    } catch (const ParseError&) {
      not_imported.insert(e.op->name);
      return;
    }
    const std::map<std::string, Tensor> wanted = run_once(file, inputs), got = run_once(again, inputs);
    for (const auto& [name, value] : wanted) EXPECT_EQ(difference(got.at(name), value, 1e-4, 1e-5), "") << name;
  });
  if (std::getenv("TAPEDECK_TEST_OP")) return;
  const std::set<std::string> wanted_refused = {
      "uniform",
      "normal",
      "trunc_normal",
      "randint",
      "randperm",
      "bernoulli",
      "multinomial",
      "dropout",
      "alpha_dropout",
      "fold_in",  // random numbers
      "erfinv",
      "lgamma",
      "digamma",
      "polygamma",
      "ctc_loss",
      "ctc_loss_grad",  // ONNX has no such function
      "left_shift",
      "right_shift",                // of signed integers
      "nonzero",                    // of no dimension
      "adaptive_max_pool2d_index",  // windows of different sizes
  };
  EXPECT_EQ(refused, wanted_refused);
  EXPECT_EQ(not_imported, std::set<std::string>{});
}

TEST_F(OnnxExportTest, TheTableHasEveryOp) {
  for (const Op* op : all_ops())
    EXPECT_TRUE(testing::of_a_test(*op) || op == find_op("constant") || onnx::find_export(op->name) != nullptr) << op->name;
}

// ---- what the file says ----

TapeFile small(const char* model, bool abstract = false) {
  ModelOptions options = small_options(*find_model(model));
  options.abstract = abstract;
  return tape_of(record_model(*find_model(model), options));
}

TEST_F(OnnxExportTest, NodesKeepTheirPathsPhasesAndPlaces) {
  const TapeFile file = small("resnet18");
  export_onnx(path(), file);
  const onnx::Model model = onnx::read_model(path());
  EXPECT_EQ(model.ir_version, 10);
  EXPECT_EQ(model.opsets.at(""), 20);
  EXPECT_EQ(model.producer, "tapedeck");
  std::map<std::string, const onnx::Node*> makers;
  std::set<std::string> names;
  for (const onnx::Node& node : model.graph.nodes) {
    EXPECT_TRUE(names.insert(node.name).second) << node.name;
    for (const std::string& output : node.outputs) makers[output] = &node;
  }
  const Graph& g = file.captured;
  std::set<std::string> phases;
  for (const Node& node : g.nodes) {
    const auto it = makers.find(g.value_name(node.first_output));
    if (it == makers.end()) continue;  // it has the name of an output
    EXPECT_EQ(onnx::module_path(*it->second), node.origin.path.str());
    EXPECT_EQ(it->second->metadata.at("tapedeck.phase"), phase_name(node.origin.phase));
    phases.insert(it->second->metadata.at("tapedeck.phase"));
  }
  EXPECT_GE(phases.size(), 2u);
}

TEST_F(OnnxExportTest, NewValuesOfStateAreOutputs) {
  const TapeFile file = small("lenet");
  const OnnxExport result = export_onnx(path(), file);
  const onnx::Model model = onnx::read_model(path());
  EXPECT_EQ(result.nodes, static_cast<std::int64_t>(model.graph.nodes.size()));
  EXPECT_EQ(result.bytes, static_cast<std::int64_t>(fs::file_size(path())));
  EXPECT_EQ(model.graph.outputs.size(), 1 + file.captured.updates.size());
  EXPECT_EQ(model.graph.initializers.front().name, "constant");
  EXPECT_NE(model.metadata.at("tapedeck.updates").find("fc1.weight=fc1.weight.next\n"), std::string::npos);
  EXPECT_NE(model.metadata.at("tapedeck.state").find("rng=rng\n"), std::string::npos);
}

// An output that is an input, one that is listed twice, and state that takes the place of other state.
TEST_F(OnnxExportTest, CopiesGiveNamesToWhatHasOneAlready) {
  TapeFile file;
  file.captured = parse(R"(graph g(%x: f32[2]) state(%a: f32[2], %b: f32[2]) {
  %y: f32[2] = add(%x, %a)
  %c: f32[2] = constant() {value=[1.0,2.0]}
  return first=%y, second=%y, %x, fixed=%c
  update %a = %b, %b = %y
})");
  const float a[] = {1, 2}, b[] = {3, 4}, x[] = {5, 6};
  file.state["a"] = from_bytes({DType::f32, {2}}, a);
  file.state["b"] = from_bytes({DType::f32, {2}}, b);
  export_onnx(path(), file);
  const onnx::Model model = onnx::read_model(path());
  std::vector<std::string> names;
  for (const onnx::ValueInfo& v : model.graph.outputs) names.push_back(v.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "x.1", "fixed", "a.next", "b.next"}));
  const std::map<std::string, Tensor> got = run_once(import_onnx(path()).file, {{"x", from_bytes({DType::f32, {2}}, x)}});
  EXPECT_EQ(numbers(got.at("second")), (std::vector<double>{6, 8}));
  EXPECT_EQ(numbers(got.at("x.1")), (std::vector<double>{5, 6}));
  EXPECT_EQ(numbers(got.at("fixed")), (std::vector<double>{1, 2}));
  EXPECT_EQ(numbers(got.at("a.next")), (std::vector<double>{3, 4}));
  EXPECT_EQ(numbers(got.at("b.next")), (std::vector<double>{6, 8}));
}

TEST_F(OnnxExportTest, LargeTensorsCanStandBesideTheModel) {
  const TapeFile file = small("lenet");
  const OnnxExport result = export_onnx(path(), file, {.external_data = true});
  const std::vector<std::string> names = folder_.names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), (std::set<std::string>{"model.onnx", "model.onnx.data"}));
  EXPECT_EQ(result.bytes, static_cast<std::int64_t>(fs::file_size(path()) + fs::file_size(path() + ".data")));
  EXPECT_LT(fs::file_size(path()), 60000u);
  const std::map<std::string, Tensor> wanted = run_once(file, file.inputs),
                                      got = run_once(import_onnx(path()).file, file.inputs);
  for (const auto& [name, value] : wanted) EXPECT_EQ(difference(got.at(name), value, 1e-4, 1e-4), "") << name;
}

// ---- errors ----

// The memory of the tensor is never touched.
TEST_F(OnnxExportTest, ModelsOfTwoGibibytesNeedAFileBesideThem) {
  TapeFile file;
  file.captured = parse(R"(graph g() state(%a: f32[16385,32768]) {
  %y: f32[1,32768] = slice(%a) {starts=[0,0], stops=[1,32768], steps=[1,1]}
  return y=%y
})");
  file.state["a"] = empty({DType::f32, {16385, 32768}});
  const std::string message = refusal(path(), file);
  EXPECT_NE(message.find("2147614736 bytes is too large for one file"), std::string::npos) << message;
  EXPECT_NE(message.find("--external-data"), std::string::npos) << message;
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(OnnxExportTest, FilesWithoutValuesAreRefused) {
  EXPECT_EQ(refusal(path(), small("lenet", true)), "cannot export: the file has no values; record it without --abstract");
  TapeFile file = small("lenet");
  file.state.erase("fc1.weight");
  EXPECT_EQ(refusal(path(), file), "cannot export: the file has no values of 'fc1.weight'; record it without --abstract");
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(OnnxExportTest, AllOpsWithoutCounterpartAreNamed) {
  TapeFile file;
  file.captured = parse(R"(graph g(%x: f32[2]) {
  %a: f32[2] = lgamma(%x) [site="model.py:4"]
  %b: f32[2] = lgamma(%a)
  %c: f32[2] = erfinv(%b)
  return y=%c
})");
  EXPECT_EQ(refusal(path(), file),
            "cannot export: no counterpart of 'lgamma' (node 0, model.py:4: ONNX has no such function), 'erfinv' (node 2: ONNX "
            "has no such function)");
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(OnnxExportTest, WhatCannotBeWrittenLeavesNothingBehind) {
  const TapeFile file = small("lenet");
  EXPECT_THROW(export_onnx(folder_.file("none/model.onnx"), file), FileError);
  fs::create_directory(path());
  EXPECT_THROW(export_onnx(path(), file, {.external_data = true}), FileError);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"model.onnx"});
  for (const FileCall failing : {FileCall::write, FileCall::rename}) {
    for (int spared = 0; spared < 2; ++spared) {
      int left = spared;
      set_file_call_hook([&](FileCall call) { return call == failing && left-- <= 0 ? ENOSPC : 0; });
      EXPECT_THROW(export_onnx(folder_.file("full.onnx"), file, {.external_data = true}), FileError);
      set_file_call_hook({});
      EXPECT_EQ(folder_.names(), std::vector<std::string>{"model.onnx"});
    }
  }
}

}  // namespace
}  // namespace tapedeck
