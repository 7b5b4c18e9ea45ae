// Tests load_weights() with files in PyTorch's names and layouts. The oracle computes each layer from the tensors of the file
// by plain loops, with the formulas of PyTorch's documentation and indices as [out,in].
#include <tapedeck/capture/file/pytorch_weights.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/training_state.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using Values = std::vector<double>;

// A file whose values are small and all different.
class File {
 public:
  void add(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i)
      values.push_back(static_cast<float>((++count_ * 7919) % 1009) / 1009 - 0.5f);
    tensors_[name] = cast(from_vector(values, shape), dtype);
  }
  // The value of the file at a flat index.
  double at(const std::string& name, std::int64_t i) const { return values_of(tensors_.at(name))[static_cast<std::size_t>(i)]; }
  Values values(const std::string& name) const { return values_of(tensors_.at(name)); }
  std::string save(const TemporaryFolder& folder) const {
    save_safetensors(folder.file("w"), tensors_);
    return folder.file("w");
  }
  static Values values_of(const Tensor& t) { return cast(t.detach(), DType::f64).to_vector<double>(); }

 private:
  std::map<std::string, Tensor> tensors_;
  std::int64_t count_ = 0;
};

void expect_near(const Tensor& got, const Values& wanted) {
  const Values values = File::values_of(got);
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 2e-6) << "element " << i;
}

// y[r] = W[r,:] x + b[r], with W [rows,columns] of PyTorch.
Values linear(const Values& w, const Values& b, const Values& x, std::size_t first_row = 0, std::size_t rows = 0) {
  const std::size_t columns = x.size();
  Values y(rows ? rows : w.size() / columns);
  for (std::size_t r = 0; r < y.size(); ++r) {
    y[r] = b.empty() ? 0 : b[first_row + r];
    for (std::size_t c = 0; c < columns; ++c) y[r] += w[(first_row + r) * columns + c] * x[c];
  }
  return y;
}

Values sample(std::size_t n, int seed) {
  Values x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(std::sin(static_cast<double>(i) * 1.7 + seed));
  return x;
}
Tensor tensor_of(const Values& x, const Shape& shape) { return cast(from_vector(x, shape), DType::f32); }

TEST(PytorchWeights, LinearIsTransposed) {
  struct Net : Module {
    Linear fc{*this, "fc", 3, 5};
    Linear plain{*this, "plain", 4, 4, {.bias = false}};  // square: the shape does not tell the layout
  } net;
  File file;
  file.add("fc.weight", {5, 3});
  file.add("fc.bias", {5});
  file.add("plain.weight", {4, 4});
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete());
  const Values x = sample(3, 1), z = sample(4, 2);
  expect_near(net.fc(tensor_of(x, {1, 3})), linear(file.values("fc.weight"), file.values("fc.bias"), x));
  expect_near(net.plain(tensor_of(z, {1, 4})), linear(file.values("plain.weight"), {}, z));
}

// An author's layer may add parameters of any rank to a Linear; only the weight of the Linear lies otherwise.
TEST(PytorchWeights, ParametersThatAnAuthorAddsToALayerLieAlike) {
  struct Scaled : Linear {
    Scaled(Module& parent, const std::string& name)
        : Linear(parent, name, 3, 2), scale(parameter("scale", ones({2}))), square(parameter("square", ones({2, 2}))) {}
    Tensor scale, square;
  };
  struct Net : Module {
    Scaled fc{*this, "fc"};
  } net;
  File file;
  file.add("fc.weight", {2, 3});
  file.add("fc.bias", {2});
  file.add("fc.scale", {2});
  file.add("fc.square", {2, 2});
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete());
  expect_near(net.fc.scale, file.values("fc.scale"));
  expect_near(net.fc.square, file.values("fc.square"));
}

TEST(PytorchWeights, MatricesMayLieInputFirst) {
  struct Net : Module {
    Linear fc{*this, "fc", 4, 4};
  } net;
  File file;
  file.add("fc.weight", {4, 4});
  file.add("fc.bias", {4});
  const TemporaryFolder folder;
  load_weights(net, file.save(folder), [](const std::string& name) { return FileWeight{name, true}; });
  expect_near(net.fc.weight, file.values("fc.weight"));
}

TEST(PytorchWeights, ConvolutionsHaveABiasPerChannel) {
  struct Net : Module {
    Conv2d conv{*this, "conv", 2, 3, {.kernel = {3, 2}}};
    ConvTranspose1d up{*this, "up", 2, 3, {.kernel = {2}, .stride = {2}}};
  } net;
  File file;
  file.add("conv.weight", {3, 2, 3, 2});
  file.add("conv.bias", {3});
  file.add("up.weight", {2, 3, 2});
  file.add("up.bias", {3});
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete());
  const Values x = sample(2 * 4 * 5, 3);
  Values wanted;
  for (int o = 0; o < 3; ++o)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        double y = file.at("conv.bias", o);
        for (int c = 0; c < 2; ++c)
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 2; ++b)
              y += file.at("conv.weight", ((o * 2 + c) * 3 + a) * 2 + b) *
                   x[static_cast<std::size_t>((c * 4 + i + a) * 5 + j + b)];
        wanted.push_back(y);
      }
  expect_near(net.conv(tensor_of(x, {1, 2, 4, 5})), wanted);

  const Values z = sample(2 * 3, 4);
  Values up;
  for (int o = 0; o < 3; ++o)
    for (int j = 0; j < 6; ++j) {
      double y = file.at("up.bias", o);
      for (int c = 0; c < 2; ++c)
        y += file.at("up.weight", (c * 3 + o) * 2 + j % 2) * z[static_cast<std::size_t>(c * 3 + j / 2)];
      up.push_back(y);
    }
  expect_near(net.up(tensor_of(z, {1, 2, 3})), up);
}

TEST(PytorchWeights, NormsAndEmbeddingsLieAlike) {
  struct Net : Module {
    BatchNorm2d bn{*this, "bn", 2};
    LayerNorm ln{*this, "ln", 3};
    Embedding table{*this, "table", 5, 3};
  } net;
  File file;
  for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) file.add(name, {2});
  file.add("bn.num_batches_tracked", {}, DType::i64);
  file.add("ln.weight", {3});
  file.add("ln.bias", {3});
  file.add("table.weight", {5, 3});
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete()) << "num_batches_tracked has no counterpart";
  expect_near(net.bn.running_mean, file.values("bn.running_mean"));
  expect_near(net.bn.running_var, file.values("bn.running_var"));
  expect_near(net.bn.weight, file.values("bn.weight"));
  expect_near(net.ln.bias, file.values("ln.bias"));
  const Tensor row = net.table(from_vector(std::vector<std::int32_t>{3}, {1}));
  expect_near(row, {file.at("table.weight", 9), file.at("table.weight", 10), file.at("table.weight", 11)});
}

TEST(PytorchWeights, AttentionHasOneProjectionForAllThree) {
  constexpr std::size_t kSize = 4, kHeads = 2, kLength = 3;
  struct Net : Module {
    MultiheadAttention attention{*this, "attention", kSize, kHeads};
  } net;
  File file;
  file.add("attention.in_proj_weight", {3 * kSize, kSize});
  file.add("attention.in_proj_bias", {3 * kSize});
  file.add("attention.out_proj.weight", {kSize, kSize});
  file.add("attention.out_proj.bias", {kSize});
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete());

  const Values x = sample(kLength * kSize, 5);
  const Values w = file.values("attention.in_proj_weight"), b = file.values("attention.in_proj_bias");
  std::vector<Values> q, k, v;
  for (std::size_t t = 0; t < kLength; ++t) {
    const Values word(x.begin() + static_cast<std::ptrdiff_t>(t * kSize),
                      x.begin() + static_cast<std::ptrdiff_t>((t + 1) * kSize));
    q.push_back(linear(w, b, word, 0, kSize));
    k.push_back(linear(w, b, word, kSize, kSize));
    v.push_back(linear(w, b, word, 2 * kSize, kSize));
  }
  Values wanted;
  constexpr std::size_t kHead = kSize / kHeads;
  for (std::size_t t = 0; t < kLength; ++t) {
    Values joined(kSize);
    for (std::size_t h = 0; h < kHeads; ++h) {
      Values weights(kLength);
      double sum = 0;
      for (std::size_t s = 0; s < kLength; ++s) {
        double score = 0;
        for (std::size_t i = h * kHead; i < (h + 1) * kHead; ++i) score += q[t][i] * k[s][i];
        sum += weights[s] = std::exp(score / std::sqrt(static_cast<double>(kHead)));
      }
      for (std::size_t i = h * kHead; i < (h + 1) * kHead; ++i)
        for (std::size_t s = 0; s < kLength; ++s) joined[i] += weights[s] / sum * v[s][i];
    }
    const Values y = linear(file.values("attention.out_proj.weight"), file.values("attention.out_proj.bias"), joined);
    wanted.insert(wanted.end(), y.begin(), y.end());
  }
  expect_near(net.attention(tensor_of(x, {1, kLength, kSize})), wanted);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One step of PyTorch's LSTM: the gates i, f, g, o.
void lstm_step(const File& f, const std::string& suffix, const Values& x, Values* h, Values* c) {
  const std::size_t n = h->size();
  const Values a = linear(f.values("rnn.weight_ih" + suffix), f.values("rnn.bias_ih" + suffix), x);
  const Values b = linear(f.values("rnn.weight_hh" + suffix), f.values("rnn.bias_hh" + suffix), *h);
  for (std::size_t i = 0; i < n; ++i) {
    const auto gate = [&](std::size_t k) { return a[k * n + i] + b[k * n + i]; };
    (*c)[i] = sigmoid(gate(1)) * (*c)[i] + sigmoid(gate(0)) * std::tanh(gate(2));
    (*h)[i] = sigmoid(gate(3)) * std::tanh((*c)[i]);
  }
}

// One step of PyTorch's GRU: the gates r, z, n.
void gru_step(const File& f, const std::string& suffix, const Values& x, Values* h) {
  const std::size_t n = h->size();
  const Values a = linear(f.values("rnn.weight_ih" + suffix), f.values("rnn.bias_ih" + suffix), x);
  const Values b = linear(f.values("rnn.weight_hh" + suffix), f.values("rnn.bias_hh" + suffix), *h);
  for (std::size_t i = 0; i < n; ++i) {
    const double r = sigmoid(a[i] + b[i]), z = sigmoid(a[n + i] + b[n + i]);
    (*h)[i] = (1 - z) * std::tanh(a[2 * n + i] + r * b[2 * n + i]) + z * (*h)[i];
  }
}

// The tensors of a recurrent layer: [gates hidden,in], [gates hidden,hidden] and two vectors.
void add_recurrent(File* file, const std::string& suffix, std::int64_t in, std::int64_t hidden, std::int64_t gates) {
  file->add("rnn.weight_ih" + suffix, {gates * hidden, in});
  file->add("rnn.weight_hh" + suffix, {gates * hidden, hidden});
  file->add("rnn.bias_ih" + suffix, {gates * hidden});
  file->add("rnn.bias_hh" + suffix, {gates * hidden});
}

TEST(PytorchWeights, LstmOfTwoLayersAndBothDirections) {
  struct Net : Module {
    Lstm rnn{*this, "rnn", 3, 2, {.layers = 2, .bidirectional = true}};
  } net;
  File file;
  for (const char* direction : {"", "_reverse"}) {
    add_recurrent(&file, std::string("_l0") + direction, 3, 2, 4);
    add_recurrent(&file, std::string("_l1") + direction, 4, 2, 4);
  }
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete());
  const Values all = sample(4 * 3, 6);
  std::vector<Values> words;
  for (std::size_t t = 0; t < 4; ++t) words.push_back({all[3 * t], all[3 * t + 1], all[3 * t + 2]});
  for (const std::string layer : {"_l0", "_l1"}) {
    std::vector<Values> next(4);
    Values h(2), c(2), back_h(2), back_c(2);
    for (std::size_t t = 0; t < 4; ++t) {
      lstm_step(file, layer, words[t], &h, &c);
      next[t].insert(next[t].begin(), h.begin(), h.end());
    }
    for (std::size_t t = 4; t-- > 0;) {
      lstm_step(file, layer + "_reverse", words[t], &back_h, &back_c);
      next[t].insert(next[t].end(), back_h.begin(), back_h.end());
    }
    words = next;
  }
  Values wanted;
  for (const Values& word : words) wanted.insert(wanted.end(), word.begin(), word.end());
  expect_near(net.rnn(tensor_of(all, {4, 1, 3})).y, wanted);
}

TEST(PytorchWeights, GruLayersAndCells) {
  struct Net : Module {
    Gru rnn{*this, "rnn", 3, 2};
  } net;
  struct CellNet : Module {
    GruCell rnn{*this, "rnn", 3, 2};
  } cell;
  File file, cell_file;
  add_recurrent(&file, "_l0", 3, 2, 3);
  add_recurrent(&cell_file, "", 3, 2, 3);
  const TemporaryFolder folder;
  EXPECT_TRUE(load_weights(net, file.save(folder)).complete());
  const Values all = sample(2 * 3, 7);
  Values h(2), wanted;
  for (std::size_t t = 0; t < 2; ++t) {
    gru_step(file, "_l0", {all[3 * t], all[3 * t + 1], all[3 * t + 2]}, &h);
    wanted.insert(wanted.end(), h.begin(), h.end());
  }
  expect_near(net.rnn(tensor_of(all, {2, 1, 3})).y, wanted);

  EXPECT_TRUE(load_weights(cell, cell_file.save(folder)).complete());
  Values state{0.5, -0.25};
  const Tensor before = tensor_of(state, {1, 2});
  gru_step(cell_file, "", {all[0], all[1], all[2]}, &state);
  expect_near(cell.rnn(tensor_of({all[0], all[1], all[2]}, {1, 3}), before), state);
}

// ---- conversions, reports, errors ----

struct Small : Module {
  Linear fc{*this, "fc", 3, 5};
  LayerNorm ln{*this, "ln", 5};
};

TEST(PytorchWeights, FloatsAreConvertedToTheNet) {
  Small net;
  File file;
  file.add("fc.weight", {5, 3}, DType::f16);
  file.add("fc.bias", {5}, DType::bf16);
  file.add("ln.weight", {5}, DType::f64);
  file.add("ln.bias", {5});
  const TemporaryFolder folder;
  const std::string path = file.save(folder);
  EXPECT_TRUE(load_weights(net, path).complete());
  EXPECT_EQ(net.fc.weight.dtype(), DType::f32);
  expect_near(net.fc.bias, file.values("fc.bias"));
  EXPECT_EQ(File::values_of(net.fc.weight)[1], file.at("fc.weight", 3)) << "f16 to f32 loses no bit";
  EXPECT_TRUE(net.fc.weight.requires_grad());
  net.to(DType::bf16);
  EXPECT_TRUE(load_weights(net, path).complete());
  EXPECT_EQ(net.ln.bias.dtype(), DType::bf16);
  EXPECT_EQ(File::values_of(net.fc.bias), file.values("fc.bias"));
}

TEST(PytorchWeights, ReportsWhatDoesNotFitAndChangesNothing) {
  Small net;
  File file;
  file.add("fc.weight", {3, 5});  // not transposed
  file.add("fc.bias", {5}, DType::i32);
  file.add("ln.weight", {5});
  file.add("head.weight", {2, 2});
  const TemporaryFolder folder;
  const std::string path = file.save(folder);
  const Values before = File::values_of(net.ln.weight);
  EXPECT_EQ(message_of<FileError>([&] { load_weights(net, path); }),
            path +
                ": the weights do not fit:\nmissing: \"ln.bias\"\nunexpected: \"head.weight\"\n"
                "mismatched: \"fc.bias\" is i32[5] in the file, not f32[5], "
                "\"fc.weight\" is f32[3,5] in the file, not f32[5,3]\n"
                "  \"ln.bias\": PyTorch's LayerNorm has bias=False; here the bias is always there, and zeros do the same: load "
                "with .strict = false");
  EXPECT_EQ(File::values_of(net.ln.weight), before);
  const LoadReport report = load_weights(net, path, pytorch_names, {.strict = false});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"ln.bias"}));
  EXPECT_EQ(report.mismatched.size(), 2u);
  expect_near(net.ln.weight, file.values("ln.weight"));
}

// ---- files of this library ----

// The weight is square, so its shape does not tell the layout.
struct Square : Module {
  Linear fc{*this, "fc", 3, 3};
  BatchNorm1d bn{*this, "bn", 3};
};

std::map<std::string, Tensor> tensors_of(const Module& net) {
  std::map<std::string, Tensor> tensors;
  for (const auto& list : {net.parameters(), net.buffers()})
    for (const Tensor& t : list) tensors.emplace(t.name().str(), t.detach());
  return tensors;
}

void expect_same_weights(const Module& a, const Module& b) {
  const std::map<std::string, Tensor> x = tensors_of(a), y = tensors_of(b);
  for (const auto& [name, tensor] : x) EXPECT_TRUE(bit_equal(tensor, y.at(name))) << name;
}

TEST(PytorchWeights, FilesOfThisLibraryHaveItsLayouts) {
  const TemporaryFolder folder;
  Square net;
  AdamW optimizer(net.parameters());
  backward(sum(square(net.bn(net.fc(normal({4, 3}))))));
  optimizer.step();
  save_state(folder.file("state"), {.net = &net, .optimizer = &optimizer});
  save_safetensors(folder.file("weights"), tensors_of(net), {{"tapedeck.weights", "1"}});
  {
    const Tensor x = normal({4, 3});
    Capture scope("step");
    scope.output("y", net.fc(scope.input("x", x)));
    save_tape(folder.file("tape"), scope.finish());
  }
  for (const char* file : {"state", "weights"}) {
    Square loaded;
    EXPECT_TRUE(load_weights(loaded, folder.file(file)).complete()) << file;
    expect_same_weights(net, loaded);
    expect_near(loaded.fc.weight, File::values_of(net.fc.weight));
  }
  // The tape has what its graph reads, and no more.
  Square loaded;
  EXPECT_EQ(load_weights(loaded, folder.file("tape"), pytorch_names, {.strict = false}).missing,
            (std::vector<std::string>{"bn.bias", "bn.running_mean", "bn.running_var", "bn.weight"}));
  EXPECT_TRUE(bit_equal(loaded.fc.weight, net.fc.weight));
  // Without the metadata the file is taken for PyTorch's.
  save_safetensors(folder.file("bare"), tensors_of(net));
  EXPECT_TRUE(load_weights(loaded, folder.file("bare")).complete());
  EXPECT_TRUE(bit_equal(loaded.fc.weight, transpose_last(net.fc.weight.detach())));
}

TEST(PytorchWeights, FilesOfThisLibraryMustFitToo) {
  const TemporaryFolder folder;
  Square net;
  std::map<std::string, Tensor> tensors = tensors_of(net);
  tensors.erase("fc.bias");
  tensors.emplace("fc.weight.m", zeros({3, 3}));
  tensors.emplace("adam.steps", from_vector(std::vector<std::int64_t>{1}, {1}));
  tensors.emplace("other", zeros({3}));
  save_safetensors(folder.file("weights"), tensors, {{"tapedeck.weights", "1"}});
  const LoadReport report = load_weights(net, folder.file("weights"), pytorch_names, {.strict = false});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"fc.bias"}));
  EXPECT_EQ(report.unexpected, (std::vector<std::string>{"other"})) << "moments and counters are no weights";
}

TEST(PytorchWeights, TensorsOfOtherDtypesAreMismatchedNotFatal) {
  Small net;
  const TemporaryFolder folder;
  const std::string header =
      R"({"fc.weight":{"dtype":"I8","shape":[5,3],"data_offsets":[0,15]},"x":{"dtype":"U16","shape":[1],"data_offsets":[15,17]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  write_all(folder.file("w"), length + header + std::string(17, '\1'));
  const LoadReport report = load_weights(net, folder.file("w"), pytorch_names, {.strict = false});
  ASSERT_EQ(report.mismatched.size(), 1u);
  EXPECT_EQ(report.mismatched[0].in_file, "I8[5,3]");
  EXPECT_EQ(report.unexpected, (std::vector<std::string>{"x"}));
}

TEST(PytorchWeights, NamesAreChosenByTheCaller) {
  Small net;
  File file;
  for (const char* name : {"model.fc.weight", "model.fc.bias", "model.ln.weight", "model.ln.bias", "step"})
    file.add(name, std::string(name) == "model.fc.weight" ? Shape{5, 3} : Shape{5});
  const TemporaryFolder folder;
  const std::string path = file.save(folder);
  const auto names = [](const std::string& name) { return FileWeight{name.starts_with("model.") ? name.substr(6) : ""}; };
  EXPECT_TRUE(load_weights(net, path, names).complete());
  expect_near(net.ln.bias, file.values("model.ln.bias"));
  EXPECT_MENTIONS(message_of<FileError>([&] {
                    load_weights(net, path, [](const std::string&) { return FileWeight{"ln.bias"}; }, {.strict = false});
                  }),
                  ": tensors \"model.fc.bias\" and \"model.fc.weight\" are both \"ln.bias\" of the net");
}

TEST(PytorchWeights, ListsTheNamesAndShapesItLooksFor) {
  Small net;
  std::string text;
  for (const auto& [name, shape] : pytorch_shapes(net)) text += name + to_string(shape) + " ";
  EXPECT_EQ(text, "fc.bias[5] fc.weight[5,3] ln.bias[5] ln.weight[5] ");
}

TEST(PytorchWeights, RefusesToWorkInsideACapture) {
  Small net;
  Capture capture;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { load_weights(net, "none"); }),
                  "[load_weights] writes parameters inside a capture");
}

}  // namespace
}  // namespace tapedeck
