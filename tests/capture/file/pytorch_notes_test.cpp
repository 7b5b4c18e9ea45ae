// Tests the sentences about names that a net has no place for: every option of PyTorch's layers that ours lack is named, and a
// name that means nothing gets no sentence.
#include <tapedeck/capture/file/pytorch_notes.h>

#include <tapedeck/capture/file/pytorch_weights.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace tapedeck {
namespace {

struct Block : Module {
  using Module::Module;
  Linear fc{*this, "fc", 3, 3, {.bias = false}};
  Linear full{*this, "full", 3, 3};
};

struct NotedNet : Module {
  Block block{*this, "block"};
  Conv2d conv{*this, "conv", 2, 3, {.kernel = {3}, .bias = false}};
  MultiheadAttention attention{*this, "attention", 4, 2, {.bias = false}};
  Lstm rnn{*this, "rnn", 3, 2, {.layers = 2}};
  Gru both{*this, "both", 3, 2, {.bidirectional = true}};
  LstmCell cell{*this, "cell", 3, 2};
  BatchNorm1d bn{*this, "bn", 3, {.affine = false}};
  LayerNorm ln{*this, "ln", 3};
  RmsNorm rms{*this, "rms", 3};
};

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PytorchNotes, NamesTheOptionThatALayerWasMadeWithout) {
  const NotedNet net;
  const std::pair<const char*, const char*> cases[] = {
      {"block.fc.bias", ".bias = false"},
      {"conv.bias", ".bias = false"},
      {"attention.in_proj_bias", ".bias = false"},
      {"attention.out_proj.bias", ".bias = false"},
      {"rnn.weight_ih_l0_reverse", ".bidirectional = true"},
      {"rnn.bias_hh_l1_reverse", ".bidirectional = true"},
      {"rnn.weight_hh_l2", "layer 2 of PyTorch's, counted from 0; this one was made with .layers = 2"},
      {"both.bias_ih_l1_reverse", ".layers = 1"},
      {"bn.weight", ".affine = false"},
      {"rms.bias", "an RmsNorm has no bias"},
  };
  for (const auto& [name, part] : cases)
    EXPECT_TRUE(mentions(note_on_unexpected(net, name), part)) << name << ": " << note_on_unexpected(net, name);
}

TEST(PytorchNotes, NamesWhatNoLayerHas) {
  const NotedNet net;
  const std::pair<const char*, const char*> cases[] = {
      {"ln.num_batches_tracked", "the number of batches that a BatchNorm has seen"},
      {"ln.running_mean", "running statistics"},
      {"block.full.weight_g", "remove_weight_norm()"},
      {"block.full.weight_v", "weight_norm or spectral_norm"},
      {"block.full.weight_u", "spectral_norm"},
      {"block.full.weight_orig", "pruning"},
      {"block.full.weight_mask", "prune.remove()"},
      {"block.full.parametrizations.weight.original0", "remove_parametrizations()"},
      {"rnn.weight_hr_l0", "proj_size"},
      {"rnn.weight_hr_l0_reverse", "proj_size"},
      {"attention.bias_k", "add_bias_kv"},
      {"attention.k_proj_weight", "kdim or vdim"},
      {"embeddings.position_ids", "0, 1, 2"},
      {"a.path.that.is.not.there.weight_g", "remove_weight_norm()"},
  };
  for (const auto& [name, part] : cases)
    EXPECT_TRUE(mentions(note_on_unexpected(net, name), part)) << name << ": " << note_on_unexpected(net, name);
}

TEST(PytorchNotes, NamesThePrefixOfAWrapper) {
  const NotedNet net;
  EXPECT_TRUE(mentions(note_on_unexpected(net, "module.block.full.weight"), "DataParallel leaves the prefix module."));
  EXPECT_TRUE(mentions(note_on_unexpected(net, "_orig_mod.rnn.weight_ih_l0"), "torch.compile leaves the prefix _orig_mod."));
  EXPECT_EQ(note_on_unexpected(net, "module.other.weight"), "") << "the rest is no name of the net either";
  struct Wrapped : Module {
    Block module{*this, "module"};
  } wrapped;
  EXPECT_EQ(note_on_unexpected(wrapped, "module.module.weight"), "") << "module is a layer of this net";
}

TEST(PytorchNotes, OtherNamesHaveNone) {
  const NotedNet net;
  for (const char* name : {"", ".", "head.weight", "block.full.scale", "blocks.fc.bias", "rnn.weight_ih", "weight_great",
                           "rnn.", "block.full.weight_gx", "cell.weight_ih_l0"})
    EXPECT_EQ(note_on_unexpected(net, name), "") << name;
  for (const char* name : {"", "block.full.weight", "rnn.weight_ih_l0", "ln.weight", "bn.running_mean"})
    EXPECT_EQ(note_on_missing(net, name), "") << name;
}

TEST(PytorchNotes, NamesTheOptionThatPyTorchsLayerWasMadeWithout) {
  const NotedNet net;
  for (const char* name : {"block.full.bias", "rnn.bias_ih_l0", "cell.bias_hh", "ln.bias"})
    EXPECT_TRUE(mentions(note_on_missing(net, name), "bias=False")) << name;
}

TEST(PytorchNotes, AreInTheReportOfALoad) {
  struct Small : Module {
    Block one{*this, "one"}, two{*this, "two"};
  } net;
  std::map<std::string, Tensor> tensors;
  for (const char* block : {"one", "two"})
    for (const char* name : {".fc.weight", ".full.weight"}) tensors[std::string(block) + name] = zeros({3, 3});
  tensors["one.fc.bias"] = tensors["two.fc.bias"] = tensors["one.full.bias"] = tensors["other"] = zeros({3});
  const TemporaryFolder folder;
  save_safetensors(folder.file("w"), tensors);
  const LoadReport report = load_weights(net, folder.file("w"), pytorch_names, {.strict = false});
  ASSERT_EQ(report.notes.size(), 3u);
  EXPECT_EQ(report.notes[0].name, "one.fc.bias");
  EXPECT_EQ(report.to_string(),
            "missing: \"two.full.bias\"\nunexpected: \"one.fc.bias\", \"other\", \"two.fc.bias\"\n"
            "  \"one.fc.bias\", \"two.fc.bias\": this layer was made with .bias = false here\n"
            "  \"two.full.bias\": PyTorch's layer has bias=False; make this one with .bias = false");
}

// A file of a layer that is missing as a whole says nothing about its options.
TEST(PytorchNotes, NoneForALayerThatIsMissing) {
  struct Small : Module {
    Linear fc{*this, "fc", 3, 3}, head{*this, "head", 3, 3};
  } net;
  const TemporaryFolder folder;
  save_safetensors(folder.file("w"), {{"fc.weight", zeros({3, 3})}, {"fc.bias", zeros({3})}});
  const LoadReport report = load_weights(net, folder.file("w"), pytorch_names, {.strict = false});
  EXPECT_EQ(report.missing.size(), 2u);
  EXPECT_TRUE(report.notes.empty());
}

// Thousands of sentences, as a hostile file may ask for, are cut in the text.
TEST(PytorchNotes, TheTextHasTheFirstNotes) {
  LoadReport report;
  for (int i = 0; i < 1000; ++i) report.notes.push_back({"name" + std::to_string(i), "sentence " + std::to_string(i / 10)});
  const std::string text = report.to_string();
  EXPECT_TRUE(mentions(text, "\"name7\" and 2 more: sentence 0\n"));
  EXPECT_TRUE(mentions(text, ": sentence 7"));
  EXPECT_FALSE(mentions(text, "sentence 8"));
}

}  // namespace
}  // namespace tapedeck
