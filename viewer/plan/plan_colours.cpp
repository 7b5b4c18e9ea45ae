#include <tapedeck/viewer/plan/plan_colours.h>
#include <tapedeck/viewer/words/index.h>

#include <utility>

namespace tapedeck::viewer {

namespace {

// The order of the stack of roles: first the bytes that are always there, then the bytes that the plan decides about.
constexpr RoleClass kStack[kRoleClassCount] = {RoleClass::state,    RoleClass::constant,  RoleClass::input,
                                               RoleClass::output,   RoleClass::saved,     RoleClass::recomputed,
                                               RoleClass::gradient, RoleClass::temporary, RoleClass::workspace};

}  // namespace

PlanColours::PlanColours(std::shared_ptr<const PlanModel> model) : PlanColours(std::move(model), nullptr) {}

PlanColours::PlanColours(std::shared_ptr<const PlanModel> model, std::shared_ptr<const ValueGroups> groups)
    : model_(std::move(model)), groups_(std::move(groups)) {
  if (groups_)
    stack_groups();
  else
    stack_roles();
}

void PlanColours::stack_roles() {
  for (int i = 0; i < kRoleClassCount; ++i) names_.push_back(role_class_name(static_cast<RoleClass>(i)));
  for (const RoleClass role : kStack)
    if (model_->has(role)) layers_.push_back({role_class_name(role), static_cast<int>(role), &model_->curve_of(role)});
}

void PlanColours::stack_groups() {
  const Graph& graph = model_->graph();
  std::vector<bool> present(at(groups_->count()));
  group_of_.reserve(model_->rects().size());
  for (const PlanRect& rect : model_->rects()) {
    const int group = rect.value == kNone ? groups_->of_node(graph, rect.node) : groups_->of_value(graph, rect.value);
    group_of_.push_back(static_cast<std::uint8_t>(group));
    present[at(group)] = true;
  }
  curves_ = model_->curves_by([&](std::size_t rect) { return at(group_of_[rect]); }, at(groups_->count()));
  for (int g = 0; g < groups_->count(); ++g) names_.push_back(groups_->name(g));
  const auto add = [&](int g) {
    if (present[at(g)]) layers_.push_back({groups_->name(g), g, &curves_[at(g)]});
  };
  // The bytes that belong to no group lie at the bottom: they are mostly there through the whole step.
  add(groups_->outside());
  for (int g = 0; g < groups_->outside(); ++g) add(g);
}

Colour PlanColours::colour_of_key(int key) const {
  if (!groups_) return role_class_colour(static_cast<RoleClass>(key));
  if (key == groups_->outside()) return outside_colour();
  return key == groups_->others() ? others_colour() : group_colour(key);
}

const std::string& PlanColours::name_of(std::size_t rect) const {
  return names_[groups_ ? group_of_[rect] : at(static_cast<int>(model_->rects()[rect].role))];
}

}  // namespace tapedeck::viewer
