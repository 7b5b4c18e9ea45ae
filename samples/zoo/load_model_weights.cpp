#include <tapedeck/samples/zoo/load_model_weights.h>

#include <tapedeck/samples/zoo/pytorch_names.h>
#include <tapedeck/tapedeck.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace zoo {

using namespace tapedeck;

namespace {

constexpr const char* kOwnWeights = "tapedeck.weights";  // metadata of the files of `tapedeck replay --save`
constexpr const char* kOwnState = "tapedeck.state";      // ... and of save_state()

WeightNames file_names_of(const std::string& model) {
  if (model.starts_with("resnet")) return torchvision_resnet_names;
  if (model == "vgg16") return torchvision_vgg16_names;
  if (model == "vgg19") return torchvision_vgg19_names;
  if (model == "vit_b16") return torchvision_vit_names;
  if (model == "gpt2") return huggingface_gpt2_names;
  return pytorch_names;
}

std::map<std::string, Tensor> state_of(const Module& net) {
  std::map<std::string, Tensor> own;
  for (const auto& list : {net.parameters(), net.buffers()})
    for (const Tensor& t : list) own.emplace(t.name().str(), t);
  return own;
}

// Moments are named after their parameter ("fc1.weight.m"); counters and the random state are the integers.
bool is_other_state(const std::string& name, const Tensor& value, const std::map<std::string, Tensor>& own) {
  const std::size_t dot = name.rfind('.');
  return value.dtype() == DType::i64 || (dot != name.npos && own.count(name.substr(0, dot)) > 0);
}

// `prefix` stands before the names of the weights; tensors without it are something else.
void load_own(Module& net, const TensorFile& file, const std::string& prefix) {
  const std::map<std::string, Tensor> own = state_of(net);
  LoadReport report;
  std::vector<std::pair<Tensor, Tensor>> matches;
  for (const auto& [in_file, value] : file.tensors) {
    if (!in_file.starts_with(prefix)) continue;
    const std::string name = in_file.substr(prefix.size());
    const auto found = own.find(name);
    if (found == own.end()) {
      if (!is_other_state(name, value, own)) report.unexpected.push_back(in_file);
    } else if (value.type() != found->second.type()) {
      report.mismatched.push_back({name, to_string(value.type()), to_string(found->second.type())});
    } else {
      matches.emplace_back(found->second, value);
    }
  }
  for (const auto& [name, target] : own)
    if (file.tensors.count(prefix + name) == 0) report.missing.push_back(name);
  if (!report.complete()) throw FileError(file.path + ": the weights do not fit:\n" + report.to_string());
  const NoGrad no_grad;
  for (const auto& [target, value] : matches) copy_(target, value);
}

}  // namespace

void load_model_weights(Module& net, const std::string& model, const std::string& path) {
  const TensorFile file = load_tensor_file(path);
  if (file.tensors.count("graph") > 0) return load_own(net, file, "state/");
  if (file.metadata.count(kOwnState) > 0) return load_own(net, file, "net/");
  if (file.metadata.count(kOwnWeights) > 0) return load_own(net, file, "");
  load_weights(net, path, file_names_of(model));
}

}  // namespace zoo
