#include <tapedeck/capture/file/own_weights.h>

namespace tapedeck {

namespace {

// Moments are named after their parameter ("fc1.weight.m"); counters and the random state are the integers.
bool is_other_state(const TensorFile& file, const std::string& in_file, const std::string& name,
                    const std::map<std::string, Tensor>& net) {
  const std::size_t dot = name.rfind('.');
  if (dot != name.npos && net.count(name.substr(0, dot)) > 0) return true;
  const auto value = file.tensors.find(in_file);
  return value != file.tensors.end() && value->second.dtype() == DType::i64;
}

}  // namespace

std::optional<std::string> own_weights_prefix(const TensorFile& file) {
  if (file.tensors.count("graph") > 0 && file.metadata.count("tapedeck.format") > 0) return "state/";
  if (file.metadata.count("tapedeck.state") > 0) return "net/";
  if (file.metadata.count("tapedeck.weights") > 0) return "";
  return std::nullopt;
}

std::map<std::string, Tensor> own_tensors_of(const Module& net) {
  std::map<std::string, Tensor> own;
  for (const auto& list : {net.parameters(), net.buffers()})
    for (const Tensor& t : list) own.emplace(t.name().str(), t);
  return own;
}

WeightNames own_names(const TensorFile& file, const std::string& prefix, const std::map<std::string, Tensor>& net) {
  return [&](const std::string& in_file) {
    if (!in_file.starts_with(prefix)) return FileWeight{};
    const std::string name = in_file.substr(prefix.size());
    if (net.count(name) == 0 && is_other_state(file, in_file, name, net)) return FileWeight{};
    return FileWeight{name};
  };
}

}  // namespace tapedeck
