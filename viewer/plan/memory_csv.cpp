#include <tapedeck/viewer/plan/memory_csv.h>

#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

namespace tapedeck::viewer {

std::string memory_csv(const PlanModel& model) {
  std::string csv = "value,role,op,module,node,birth,death,address,bytes\n";
  for (const PlanRect& rect : model.rects()) {
    const bool is_made = rect.node != kNone;
    const Node* const node = is_made ? &model.graph().nodes[static_cast<std::size_t>(rect.node)] : nullptr;
    csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(rect.value == kNone ? "" : model.name_of(rect.value)),
                       csv_field(role_class_name(rect.role)), is_made ? csv_field(node->op->name) : "",
                       is_made ? csv_field(node->origin.path.str()) : "", is_made ? std::to_string(rect.node) : "", rect.begin,
                       rect.end, rect.address, rect.bytes);
  }
  return csv;
}

}  // namespace tapedeck::viewer
