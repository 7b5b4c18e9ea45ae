// PyTorch's exporters say in which module a node was made: the newer one in the metadata of the node, the older one in its
// name.
#include <tapedeck/capture/onnx/interpreter.h>

#include <algorithm>
#include <string_view>

namespace tapedeck::onnx {

namespace {

// The last text but one of a list such as "['', 'layer1', 'layer1.0', 'conv2d']": the last one is the op.
std::string last_scope(std::string_view list) {
  std::vector<std::string_view> texts;
  for (std::size_t at = list.find('\''); at != std::string_view::npos; at = list.find('\'', at)) {
    const std::size_t end = list.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    texts.push_back(list.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return texts.size() < 2 ? std::string() : std::string(texts[texts.size() - 2]);
}

// "/layer1/layer1.0/conv1/Conv" names each module by its whole path below a list and by its own name elsewhere.
std::string path_of_name(std::string_view name) {
  if (name.empty() || name[0] != '/') return {};
  std::string path;
  std::string_view before;
  for (std::size_t at = 1;;) {
    const std::size_t end = name.find('/', at);
    if (end == std::string_view::npos) return path;  // what is left is the op
    std::string_view part = name.substr(at, end - at);
    const std::string_view whole = part;
    if (!before.empty() && part.size() > before.size() && part.starts_with(before) && part[before.size()] == '.')
      part.remove_prefix(before.size() + 1);
    if (!part.empty()) path += (path.empty() ? "" : ".") + std::string(part);
    before = whole;
    at = end + 1;
  }
}

}  // namespace

std::string module_path(const Node& node) {
  std::string path;
  if (const auto it = node.metadata.find("pkg.torch.onnx.name_scopes"); it != node.metadata.end())
    path = last_scope(it->second);
  else
    path = path_of_name(node.name);
  if (path.size() > 200) path.resize(200);
  for (char& c : path)
    if (!(std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_')) c = '_';
  return path;
}

}  // namespace tapedeck::onnx
