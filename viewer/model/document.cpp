#include <tapedeck/viewer/model/document.h>

#include <tapedeck/capture/file/file.h>

#include <utility>

namespace tapedeck::viewer {

std::string base_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string Document::title() const { return captured ? name + " · " + captured->name.str() : name; }

Document open_document(const std::string& path) {
  Document document;
  document.path = path;
  document.name = base_name(path);
  if (path.ends_with(".graph")) {
    document.captured = std::make_shared<const Graph>(load_graph(path));
    return document;
  }
  TapeFile file = load_tape(path, Check::structure);
  document.captured = std::make_shared<const Graph>(std::move(file.captured));
  document.plan = std::move(file.plan);
  document.metadata = std::move(file.metadata);
  return document;
}

}  // namespace tapedeck::viewer
