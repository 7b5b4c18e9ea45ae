#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <map>

namespace tapedeck {

namespace {

std::map<std::string, Model>& registry() {
  static auto* models = new std::map<std::string, Model>;
  return *models;
}

struct Size {
  const char* name;
  std::int64_t ModelOptions::*value;
};
constexpr Size kSizes[] = {{"batch", &ModelOptions::batch},
                           {"image", &ModelOptions::image},
                           {"seq", &ModelOptions::seq},
                           {"layers", &ModelOptions::layers},
                           {"width", &ModelOptions::width}};

void require_taken(const Model& model, const char* option) {
  if (std::find(model.options.begin(), model.options.end(), option) == model.options.end())
    throw UsageError(fmt::format("model {} takes no {}; it takes {}", model.name, option, fmt::join(model.options, ", ")));
}

// Returns `given`; if that is empty, the default of the model; if that is empty too, the first of the choices.
std::string chosen(const char* option, const std::string& given, const std::string& by_default,
                   std::initializer_list<const char*> choices) {
  const std::string text = !given.empty() ? given : !by_default.empty() ? by_default : *choices.begin();
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    throw UsageError(fmt::format("unknown {} '{}': {}", option, text, fmt::join(choices, " or ")));
  return text;
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

ModelOptions with_defaults(const Model& model, ModelOptions given) {
  for (const Size& size : kSizes) {
    std::int64_t& value = given.*size.value;
    if (value != 0) require_taken(model, size.name);
    if (value < 0) throw UsageError(fmt::format("model {}: {} must be at least 1, not {}", model.name, size.name, value));
    if (value == 0) value = model.defaults.*size.value;
  }
  if (!given.dtype.empty()) require_taken(model, "dtype");
  given.dtype = chosen("dtype", given.dtype, model.defaults.dtype, {"f32", "f16", "bf16"});
  given.optimizer = chosen("optimizer", given.optimizer, model.defaults.optimizer, {"sgd", "adamw"});
  return given;
}

ModelOptions small_options(const Model& model) {
  ModelOptions o;
  const auto takes = [&](const char* option) {
    return std::find(model.options.begin(), model.options.end(), option) != model.options.end();
  };
  if (takes("batch")) o.batch = 2;
  if (takes("image")) o.image = 64;
  if (takes("seq")) o.seq = 16;
  if (takes("layers")) o.layers = std::min<std::int64_t>(2, model.defaults.layers);
  if (takes("width")) {
    const std::int64_t quarter = std::max<std::int64_t>(1, model.defaults.width / 4);
    o.width = quarter < 64 ? quarter : quarter / 64 * 64;
  }
  return o;
}

Captured record_model(const Model& model, const ModelOptions& given) { return model.record(with_defaults(model, given)); }

}  // namespace tapedeck
