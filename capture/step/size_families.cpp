#include <tapedeck/capture/step/size_families.h>

#include <tapedeck/capture/record/compare_recordings.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

DimFamilies::DimFamilies(DimOptions dims, PlanOptions plan, ExecutorOptions executor, std::vector<std::string> names)
    : dims_(std::move(dims)),
      plan_(std::move(plan)),
      executor_(std::move(executor)),
      names_(std::move(names)),
      declared_(new_buckets()) {}

std::unique_ptr<DimBuckets> DimFamilies::new_buckets() const { return std::make_unique<DimBuckets>(dims_, plan_, executor_); }

Sizes DimFamilies::sizes_of(const std::vector<Type>& types) const {
  std::map<std::string, Type> named;
  for (std::size_t i = 0; i < types.size(); ++i)
    named.emplace(i < names_.size() ? names_[i] : fmt::format("in{}", i), types[i]);
  return declared_->sizes_of(named);
}

void DimFamilies::check(const std::vector<Type>& types) const { sizes_of(types); }

// The types with every named axis as 0.
std::vector<Type> DimFamilies::pattern_of(std::vector<Type> types) const {
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto it = dims_.inputs.find(i < names_.size() ? names_[i] : fmt::format("in{}", i));
    if (it == dims_.inputs.end()) continue;
    for (int axis = 0; axis < types[i].shape.rank && axis < static_cast<int>(it->second.size()); ++axis)
      if (!it->second[axis].empty()) types[i].shape[axis] = 0;
  }
  return types;
}

DimFamilies::Family* DimFamilies::find(const std::vector<Type>& types, const Surroundings& surroundings) {
  const std::vector<Type> pattern = pattern_of(types);
  for (Family& f : families_)
    if (f.pattern == pattern && surroundings.difference(f.surroundings, draws(f.model)).empty()) return &f;
  return nullptr;
}

void DimFamilies::add(const std::vector<Type>& types, const Surroundings& surroundings, const Captured& captured) {
  Family* family = find(types, surroundings);
  if (!family) {
    families_.push_back({pattern_of(types), surroundings, {}, new_buckets(), ""});
    family = &families_.back();
  } else if (const std::string other = tensors_difference(family->model, captured); !other.empty()) {
    family->buckets = new_buckets();
    family->begun_anew = other;
  }
  family->model = captured;
  family->buckets->add(captured.graph, sizes_of(types));
}

void DimFamilies::forget(const std::vector<Type>& types, const Surroundings& surroundings) {
  if (Family* f = find(types, surroundings)) families_.erase(families_.begin() + (f - families_.data()));
}

std::shared_ptr<Executor> DimFamilies::executor(const std::vector<Type>& types, const Surroundings& surroundings) {
  Family* family = find(types, surroundings);
  return family && family->buckets->general() ? family->buckets->find(sizes_of(types)) : nullptr;
}

Captured DimFamilies::captured(const std::vector<Type>& types, const Surroundings& surroundings) {
  const Family& family = *find(types, surroundings);
  Captured made = family.model;
  made.graph = family.buckets->graph_at(sizes_of(types));
  made.script = nullptr;
  const Graph& g = made.graph;
  for (std::size_t i = 0; i < made.report.inputs.size() && i < static_cast<std::size_t>(g.n_inputs); ++i)
    made.report.inputs[i].type = g.values[i].type;
  for (std::size_t i = 0; i < made.report.outputs.size() && i < g.outputs.size(); ++i)
    made.report.outputs[i].type = g.values[g.outputs[i]].type;
  return made;
}

std::string DimFamilies::explain() const {
  std::string text;
  for (const Family& f : families_) {
    text += f.buckets->explain();
    if (!f.begun_anew.empty()) text += fmt::format("  earlier recordings do not count: {}\n", f.begun_anew);
  }
  return text;
}

}  // namespace tapedeck
