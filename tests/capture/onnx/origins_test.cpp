// Tests the module and the line of a node, as the exporters wrote them, and the choice of parameters.
#include <tapedeck/tests/capture/onnx/onnx_data.h>

#include <tapedeck/capture/onnx/choose_parameters.h>
#include <tapedeck/capture/onnx/interpreter.h>
#include <tapedeck/engine/text/text.h>

#include <map>
#include <set>

namespace tapedeck {
namespace {

std::string path_of(const std::string& name, const std::string& scopes = "") {
  onnx::Node node;
  node.name = name;
  if (!scopes.empty()) node.metadata["pkg.torch.onnx.name_scopes"] = scopes;
  return onnx::module_path(node);
}

TEST(OnnxOrigin, TheModuleIsInTheNameOrInTheMetadata) {
  EXPECT_EQ(path_of("/layer1/layer1.0/conv1/Conv"), "layer1.0.conv1");
  EXPECT_EQ(path_of("/block1/conv1/Conv"), "block1.conv1");
  EXPECT_EQ(path_of("/encoder/layers/layers.11/self_attn/MatMul_1"), "encoder.layers.11.self_attn");
  EXPECT_EQ(path_of("/Add"), "");
  EXPECT_EQ(path_of("node_conv2d_1"), "");
  EXPECT_EQ(path_of(""), "");
  EXPECT_EQ(path_of("node_conv2d_1", "['', 'block1', 'block1.bn1', 'batch_norm']"), "block1.bn1");
  EXPECT_EQ(path_of("n", "['', 'conv2d']"), "");
  EXPECT_EQ(path_of("n", "'''"), "");
  EXPECT_EQ(path_of("/a b/\"c\"/Conv"), "a_b._c_");
  EXPECT_LE(path_of("/" + std::string(100000, 'x') + "/Conv").size(), 200U);
}

TEST(OnnxOrigin, NodesHaveTheModuleAndTheLineOfTheirAuthor) {
  if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  const Graph graph = import_onnx(onnx_models() + "/resnet_block/model.onnx").file.captured;
  std::set<std::string> paths, files;
  for (const Node& node : graph.nodes) {
    paths.insert(node.origin.path.str());
    files.insert(node.origin.site.str().substr(0, node.origin.site.str().find(':')));
  }
  EXPECT_TRUE(paths.count("block1.conv2") || paths.count("block1.bn2")) << print(graph);
  EXPECT_TRUE(files.count("export.py")) << print(graph);
}

TEST(OnnxParameters, AreWeightsAndNoNumbersOfFormulas) {
  if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  const auto uses = [](const std::string& model, const std::vector<std::string>& patterns = {}) {
    return onnx::choose_parameters(onnx::read_model(onnx_models() + "/" + model + "/model.onnx"), patterns);
  };
  const auto transformer = uses("transformer");
  EXPECT_EQ(transformer.at("norm1.weight"), Role::parameter);
  int made_up = 0;
  for (const auto& [name, use] : transformer)
    if (name.starts_with("val_") && use == Role::parameter) ++made_up;  // the weights that the exporter transposed
  EXPECT_GT(made_up, 3);
  EXPECT_EQ(transformer.at("val_26"), Role::none);  // the divisor of the scores
  const auto unet = uses("unet");
  EXPECT_EQ(unet.at("val_92"), Role::none);  // the scales of a resize
  const auto trained = uses("resnet_block_train");
  EXPECT_EQ(trained.at("bn.running_mean"), Role::statistic);
  EXPECT_EQ(trained.at("bn.weight"), Role::parameter);
  const auto chosen = uses("resnet_block_train", {"fc.*"});
  EXPECT_EQ(chosen.at("fc.weight"), Role::parameter);
  EXPECT_EQ(chosen.at("conv.weight"), Role::none);
}

}  // namespace
}  // namespace tapedeck
