#include <tapedeck/viewer/model/document.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/foreign_file.h>
#include <tapedeck/capture/planner/requests/asked_options.h>
#include <tapedeck/engine/ir/error.h>

#include <utility>

namespace tapedeck::viewer {

std::string base_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string Document::title() const { return captured ? name + " · " + captured->name.str() : name; }

namespace {

// A program that registers a strategy of its own may have written the file.
void take_options_of_plan(Document* document) {
  if (!document->plan) return;
  try {
    document->options = options_asked(*document->plan);
  } catch (const UsageError& unknown) {
    document->notes.push_back("further plans are not made as the plan in the file: " + std::string(unknown.what()));
  }
}

void take_costs(CostSource costs, const std::optional<Profile>& profile, Document* document) {
  FileCosts found = costs_of_file(costs, profile);
  document->costs = costs;
  document->options.costs = std::move(found.model);
  for (std::string& note : found.notes) document->notes.push_back(std::move(note));
}

}  // namespace

Document open_document(const std::string& path, CostSource costs) {
  Document document;
  document.path = path;
  document.name = base_name(path);
  if (path.ends_with(".graph") || is_graph_text(path)) {
    document.captured = std::make_shared<const Graph>(load_graph(path));
    take_costs(costs, {}, &document);
    return document;
  }
  TapeFile file = load_tape(path, Check::structure);
  document.captured = std::make_shared<const Graph>(std::move(file.captured));
  document.plan = std::move(file.plan);
  document.metadata = std::move(file.metadata);
  take_options_of_plan(&document);
  take_costs(costs, file.profile, &document);
  return document;
}

}  // namespace tapedeck::viewer
