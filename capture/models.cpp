#include <tapedeck/capture/models.h>

#include <map>

namespace tapedeck {

namespace {
std::map<std::string, Model>& registry() {
  static auto* models = new std::map<std::string, Model>;
  return *models;
}
}  // namespace

void register_model(Model model) { registry().insert_or_assign(model.name, std::move(model)); }

const Model* find_model(const std::string& name) {
  auto it = registry().find(name);
  return it == registry().end() ? nullptr : &it->second;
}

std::vector<Model> all_models() {
  std::vector<Model> models;
  for (const auto& [name, model] : registry()) models.push_back(model);
  return models;
}

}  // namespace tapedeck
