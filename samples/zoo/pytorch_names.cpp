// Names of weights in files, word by word: "layer2.0.bn1.weight" is {layer2, 0, bn1, weight}.
#include <tapedeck/samples/zoo/pytorch_names.h>

#include <tapedeck/samples/zoo/vgg.h>

#include <map>
#include <vector>

namespace zoo {

namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& name) {
  Words words(1);
  for (const char c : name)
    if (c == '.')
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

// The words from number `first` on, each with a dot before it.
std::string rest_of(const Words& words, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < words.size(); ++i) text += "." + words[i];
  return text;
}

// The other name of a word; null if it has none.
using Dictionary = std::map<std::string, std::string>;
const std::string* find(const Dictionary& names, const std::string& word) {
  const auto it = names.find(word);
  return it == names.end() ? nullptr : &it->second;
}

// The convolutions of VGG have the places 0, 2, ... in "features": a relu follows each of them, and a pooling each group.
template <int Depth>
FileWeight vgg_names(const std::string& in_file) {
  static const Dictionary features = [] {
    Dictionary names;
    int place = 0;
    for (std::size_t group = 0; group < 5; ++group, ++place)
      for (int i = 0; i < Vgg<Depth>::kConvs[group]; ++i, place += 2)
        names[std::to_string(place)] = "conv" + std::to_string(group + 1) + "_" + std::to_string(i + 1);
    return names;
  }();
  static const Dictionary classifier = {{"0", "fc1"}, {"3", "fc2"}, {"6", "fc3"}};
  const Words words = words_of(in_file);
  if (words.size() < 3 || (words[0] != "features" && words[0] != "classifier")) return {in_file};
  const std::string* layer = find(words[0] == "features" ? features : classifier, words[1]);
  return {layer ? *layer + rest_of(words, 2) : in_file};
}

}  // namespace

FileWeight torchvision_resnet_names(const std::string& in_file) {
  static const Dictionary outside = {{"conv1", "stem.conv"}, {"bn1", "stem.norm"}, {"fc", "head"}};
  static const Dictionary inside = {{"conv1", "a.conv"}, {"bn1", "a.norm"},   {"conv2", "b.conv"},
                                    {"bn2", "b.norm"},   {"conv3", "c.conv"}, {"bn3", "c.norm"}};
  static const Dictionary shortcut = {{"0", "shortcut.conv"}, {"1", "shortcut.norm"}};
  const Words words = words_of(in_file);
  if (const std::string* layer = find(outside, words[0])) return {*layer + rest_of(words, 1)};
  if (words.size() < 4 || !words[0].starts_with("layer")) return {in_file};
  const std::string block = "stage" + words[0].substr(5) + "." + words[1] + ".";
  if (words[2] == "downsample") {
    const std::string* layer = find(shortcut, words[3]);
    return {layer ? block + *layer + rest_of(words, 4) : in_file};
  }
  const std::string* layer = find(inside, words[2]);
  return {layer ? block + *layer + rest_of(words, 3) : in_file};
}

FileWeight torchvision_vgg16_names(const std::string& in_file) { return vgg_names<16>(in_file); }
FileWeight torchvision_vgg19_names(const std::string& in_file) { return vgg_names<19>(in_file); }

FileWeight torchvision_vit_names(const std::string& in_file) {
  static const Dictionary in_block = {{"ln_1", "norm1"}, {"self_attention", "attention"}, {"ln_2", "norm2"}};
  static const Dictionary in_mlp = {{"0", "fc1"}, {"linear_1", "fc1"}, {"3", "fc2"}, {"linear_2", "fc2"}};
  const std::string block = "encoder_layer_";
  const Words words = words_of(in_file);
  if (words[0] == "conv_proj") return {"patches" + rest_of(words, 1)};
  if (in_file == "encoder.pos_embedding") return {"positions"};
  if (in_file.starts_with("encoder.ln.")) return {"norm" + rest_of(words, 2)};
  if (in_file.starts_with("heads.head.")) return {"head" + rest_of(words, 2)};
  if (words.size() < 5 || !in_file.starts_with("encoder.layers." + block)) return {in_file};
  const std::string path = "block." + words[2].substr(block.size()) + ".";
  const bool mlp = words[3] == "mlp";
  const std::string* layer = mlp ? find(in_mlp, words[4]) : find(in_block, words[3]);
  return {layer ? path + *layer + rest_of(words, mlp ? 5 : 4) : in_file};
}

FileWeight huggingface_gpt2_names(const std::string& in_file) {
  static const Dictionary outside = {{"wte", "words"}, {"wpe", "positions"}, {"ln_f", "norm"}};
  static const Dictionary in_block = {{"ln_1.weight", "norm1.weight"},
                                      {"ln_1.bias", "norm1.bias"},
                                      {"attn.c_attn.weight", "attention.in_proj_weight"},
                                      {"attn.c_attn.bias", "attention.in_proj_bias"},
                                      {"attn.c_proj.weight", "attention.out_proj.weight"},
                                      {"attn.c_proj.bias", "attention.out_proj.bias"},
                                      {"ln_2.weight", "norm2.weight"},
                                      {"ln_2.bias", "norm2.bias"},
                                      {"mlp.c_fc.weight", "fc1.weight"},
                                      {"mlp.c_fc.bias", "fc1.bias"},
                                      {"mlp.c_proj.weight", "fc2.weight"},
                                      {"mlp.c_proj.bias", "fc2.bias"},
                                      {"attn.bias", ""},
                                      {"attn.masked_bias", ""}};
  const std::string prefix = "transformer.";
  const std::string name = in_file.starts_with(prefix) ? in_file.substr(prefix.size()) : in_file;
  if (name == "lm_head.weight") return {};
  const Words words = words_of(name);
  if (const std::string* layer = find(outside, words[0])) return {*layer + rest_of(words, 1)};
  if (words.size() < 4 || words[0] != "h") return {in_file};
  const std::string* layer = find(in_block, rest_of(words, 2).substr(1));
  if (!layer) return {in_file};
  if (layer->empty()) return {};
  return {"block." + words[1] + "." + *layer, true};
}

}  // namespace zoo
