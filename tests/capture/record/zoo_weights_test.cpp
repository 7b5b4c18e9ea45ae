// Tests the names of well-known weights for the models of the zoo. The lists of names and shapes are written here from the
// structure of torchvision's and Hugging Face's models, by plain loops. A loaded value is a number made from its name and its
// place in the file.
#include <tapedeck/capture/file/pytorch_weights.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/samples/zoo/gpt2.h>
#include <tapedeck/samples/zoo/pytorch_names.h>
#include <tapedeck/samples/zoo/resnet.h>
#include <tapedeck/samples/zoo/vgg.h>
#include <tapedeck/samples/zoo/vit.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using Shapes = std::map<std::string, Shape>;

// The names of the file are those that the net looks for, each with the same shape.
void expect_names(const Module& net, const Shapes& in_file, const WeightNames& names, bool input_first = false) {
  const Shapes wanted = pytorch_shapes(net);
  Shapes found;
  for (const auto& [name, shape] : in_file) {
    const FileWeight weight = names(name);
    if (weight.name.empty() || weight.name.ends_with("num_batches_tracked")) continue;
    ASSERT_TRUE(wanted.count(weight.name)) << name << " is " << weight.name;
    const Shape& own = wanted.at(weight.name);
    const Shape expected = weight.input_first && own.rank == 2 && input_first ? Shape{own[1], own[0]} : own;
    EXPECT_EQ(to_string(shape), to_string(expected)) << name;
    EXPECT_TRUE(found.emplace(weight.name, shape).second) << weight.name << " twice";
  }
  EXPECT_EQ(found.size(), wanted.size());
}

void add_layer(Shapes* all, const std::string& name, const Shape& weight) {
  (*all)[name + ".weight"] = weight;
  (*all)[name + ".bias"] = {weight[0]};
}

void add_norm(Shapes* all, const std::string& name, std::int64_t channels) {
  for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) (*all)[name + part] = {channels};
  (*all)[name + ".num_batches_tracked"] = {};
}

// torchvision's resnet: layer1 to layer4, with conv1 .. conv3 and bn1 .. bn3 in each block.
Shapes resnet_shapes(const std::vector<int>& blocks, bool bottleneck, std::int64_t width) {
  Shapes all;
  all["conv1.weight"] = {width, 3, 7, 7};
  add_norm(&all, "bn1", width);
  std::int64_t in = width;
  for (int layer = 1; layer <= 4; ++layer) {
    const std::int64_t inner = width << (layer - 1), out = bottleneck ? 4 * inner : inner;
    for (int b = 0; b < blocks[static_cast<std::size_t>(layer - 1)]; ++b) {
      const std::string name = "layer" + std::to_string(layer) + "." + std::to_string(b) + ".";
      if (bottleneck) {
        all[name + "conv1.weight"] = {inner, in, 1, 1};
        all[name + "conv2.weight"] = {inner, inner, 3, 3};
        all[name + "conv3.weight"] = {out, inner, 1, 1};
        add_norm(&all, name + "bn3", out);
      } else {
        all[name + "conv1.weight"] = {inner, in, 3, 3};
        all[name + "conv2.weight"] = {inner, inner, 3, 3};
      }
      add_norm(&all, name + "bn1", inner);
      add_norm(&all, name + "bn2", inner);
      if (b == 0 && (layer > 1 || bottleneck)) {
        all[name + "downsample.0.weight"] = {out, in, 1, 1};
        add_norm(&all, name + "downsample.1", out);
      }
      in = out;
    }
  }
  add_layer(&all, "fc", {1000, in});
  return all;
}

TEST(ZooWeights, ResnetHasTheNamesOfTorchvision) {
  const AbstractMode abstract;
  expect_names(zoo::Resnet<18>({.width = 64}), resnet_shapes({2, 2, 2, 2}, false, 64), zoo::torchvision_resnet_names);
  expect_names(zoo::Resnet<50>({.width = 64}), resnet_shapes({3, 4, 6, 3}, true, 64), zoo::torchvision_resnet_names);
  expect_names(zoo::Resnet<152>({.width = 64}), resnet_shapes({3, 8, 36, 3}, true, 64), zoo::torchvision_resnet_names);
}

TEST(ZooWeights, VggHasTheNamesOfTorchvision) {
  const AbstractMode abstract;
  const auto shapes = [](const std::vector<int>& convs) {  // 0: a pooling
    Shapes all;
    std::int64_t in = 3;
    int place = 0;
    for (int out : convs) {
      if (out) {
        add_layer(&all, "features." + std::to_string(place++), {out, in, 3, 3});  // and a relu
        in = out;
      }
      ++place;
    }
    add_layer(&all, "classifier.0", {4096, 512 * 7 * 7});
    add_layer(&all, "classifier.3", {4096, 4096});
    add_layer(&all, "classifier.6", {1000, 4096});
    return all;
  };
  const Shapes vgg16 = shapes({64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0});
  EXPECT_TRUE(vgg16.count("features.28.weight"));  // the last one of vgg16
  expect_names(zoo::Vgg<16>(), vgg16, zoo::torchvision_vgg16_names);
  const Shapes vgg19 = shapes({64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0});
  EXPECT_TRUE(vgg19.count("features.34.weight"));
  expect_names(zoo::Vgg<19>(), vgg19, zoo::torchvision_vgg19_names);
}

Shapes vit_shapes(std::int64_t layers, std::int64_t width, std::int64_t words, const std::string& first,
                  const std::string& second) {
  Shapes all;
  all["class_token"] = {1, 1, width};
  all["encoder.pos_embedding"] = {1, words, width};
  add_layer(&all, "conv_proj", {width, 3, 16, 16});
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "encoder.layers.encoder_layer_" + std::to_string(i) + ".";
    for (const char* norm : {"ln_1", "ln_2"}) add_layer(&all, name + norm, {width});
    all[name + "self_attention.in_proj_weight"] = {3 * width, width};
    all[name + "self_attention.in_proj_bias"] = {3 * width};
    add_layer(&all, name + "self_attention.out_proj", {width, width});
    add_layer(&all, name + "mlp." + first, {4 * width, width});
    add_layer(&all, name + "mlp." + second, {width, 4 * width});
  }
  add_layer(&all, "encoder.ln", {width});
  add_layer(&all, "heads.head", {1000, width});
  return all;
}

TEST(ZooWeights, VitHasTheNamesOfTorchvision) {
  const AbstractMode abstract;
  const zoo::Vit net({.image = 224, .layers = 12, .width = 768});
  expect_names(net, vit_shapes(12, 768, 197, "0", "3"), zoo::torchvision_vit_names);
  expect_names(net, vit_shapes(12, 768, 197, "linear_1", "linear_2"), zoo::torchvision_vit_names);
}

// Hugging Face's gpt2 keeps its matrices as [in,out].
Shapes gpt2_shapes(std::int64_t layers, std::int64_t width, const std::string& prefix) {
  Shapes all;
  all[prefix + "wte.weight"] = {50257, width};
  all[prefix + "wpe.weight"] = {1024, width};
  const auto matrix = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    all[name + ".weight"] = {in, out};
    all[name + ".bias"] = {out};
  };
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = prefix + "h." + std::to_string(i) + ".";
    for (const char* norm : {"ln_1", "ln_2"}) add_layer(&all, name + norm, {width});
    matrix(name + "attn.c_attn", width, 3 * width);
    matrix(name + "attn.c_proj", width, width);
    matrix(name + "mlp.c_fc", width, 4 * width);
    matrix(name + "mlp.c_proj", 4 * width, width);
    all[name + "attn.bias"] = {1, 1, 1024, 1024};
    all[name + "attn.masked_bias"] = {};
  }
  add_layer(&all, prefix + "ln_f", {width});
  all["lm_head.weight"] = {50257, width};
  return all;
}

TEST(ZooWeights, Gpt2HasTheNamesOfHuggingFace) {
  const AbstractMode abstract;
  const zoo::Gpt2 net({.seq = 1024, .layers = 12, .width = 768});
  expect_names(net, gpt2_shapes(12, 768, ""), zoo::huggingface_gpt2_names, true);
  expect_names(net, gpt2_shapes(12, 768, "transformer."), zoo::huggingface_gpt2_names, true);
}

// ---- values ----

float value_of(const std::string& name, std::int64_t i) {
  return static_cast<float>((std::hash<std::string>()(name) + static_cast<std::size_t>(i) * 40503) % 65536) / 65536;
}

void write_file(const std::string& path, const Shapes& shapes) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, shape] : shapes) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(value_of(name, i));
    tensors[name] = from_vector(values, shape);
  }
  save_safetensors(path, tensors);
}

// Element i of the tensor is the file's element `in_file(i)` of `name`.
void expect_values(
    const Tensor& t, const std::string& name,
    const std::function<std::int64_t(std::int64_t)>& in_file = [](std::int64_t i) { return i; }) {
  const std::vector<float> values = t.to_vector<float>();
  for (std::int64_t i = 0; i < t.numel(); ++i)
    ASSERT_EQ(values[static_cast<std::size_t>(i)], value_of(name, in_file(i))) << name << ", element " << i;
}

// For a matrix [in,out] of ours: the place of element i in PyTorch's [out,in].
std::function<std::int64_t(std::int64_t)> transposed(std::int64_t in, std::int64_t out) {
  return [=](std::int64_t i) { return i % out * in + i / out; };
}

TEST(ZooWeights, ResnetGetsItsValues) {
  const TemporaryFolder folder;
  write_file(folder.file("w"), resnet_shapes({2, 2, 2, 2}, false, 8));
  zoo::Resnet<18> net({.width = 8});
  EXPECT_TRUE(load_weights(net, folder.file("w"), zoo::torchvision_resnet_names).complete());
  std::map<std::string, Tensor> own;
  for (const auto& list : {net.parameters(), net.buffers()})
    for (const Tensor& t : list) own[t.name().str()] = t;
  expect_values(own.at("stem.conv.weight"), "conv1.weight");
  expect_values(own.at("stage1.1.b.conv.weight"), "layer1.1.conv2.weight");
  expect_values(own.at("stage3.0.a.norm.running_var"), "layer3.0.bn1.running_var");
  expect_values(own.at("stage4.0.shortcut.norm.bias"), "layer4.0.downsample.1.bias");
  expect_values(own.at("head.weight"), "fc.weight", transposed(64, 1000));
  EXPECT_EQ(net(full({1, 3, 32, 32}, 0.5)).shape(), (Shape{1, 1000}));
}

TEST(ZooWeights, VitGetsItsValues) {
  const TemporaryFolder folder;
  write_file(folder.file("w"), vit_shapes(2, 64, 5, "linear_1", "linear_2"));
  zoo::Vit net({.image = 32, .layers = 2, .width = 64});
  EXPECT_TRUE(load_weights(net, folder.file("w"), zoo::torchvision_vit_names).complete());
  expect_values(net.class_token, "class_token");
  expect_values(net.patches.bias, "conv_proj.bias");
  const std::string layer = "encoder.layers.encoder_layer_1.";
  expect_values(net.blocks[1].attention.in_weight, layer + "self_attention.in_proj_weight", transposed(64, 192));
  expect_values(net.blocks[1].attention.out_weight, layer + "self_attention.out_proj.weight", transposed(64, 64));
  expect_values(net.blocks[1].fc2.weight, layer + "mlp.linear_2.weight", transposed(256, 64));
  expect_values(net.blocks[1].norm2.bias, layer + "ln_2.bias");
}

TEST(ZooWeights, Gpt2GetsItsValues) {
  const TemporaryFolder folder;
  write_file(folder.file("w"), gpt2_shapes(1, 16, "transformer."));
  zoo::Gpt2 net({.seq = 8, .layers = 1, .width = 16});
  EXPECT_TRUE(load_weights(net, folder.file("w"), zoo::huggingface_gpt2_names).complete());
  expect_values(net.words.weight, "transformer.wte.weight");
  expect_values(net.positions.weight, "transformer.wpe.weight");
  expect_values(net.blocks[0].attention.in_weight, "transformer.h.0.attn.c_attn.weight");
  expect_values(net.blocks[0].attention.out_weight, "transformer.h.0.attn.c_proj.weight");
  expect_values(net.blocks[0].fc1.weight, "transformer.h.0.mlp.c_fc.weight");
  expect_values(net.norm.bias, "transformer.ln_f.bias");
}

}  // namespace
}  // namespace tapedeck
