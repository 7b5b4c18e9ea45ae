#include <tapedeck/capture/record/node_mismatch.h>

#include <fmt/format.h>

#include <utility>

namespace tapedeck {

std::string Mismatch::text() const {
  return fmt::format("{} mismatch: {}, then {}", mismatch_name(kind), captured.name, called.name);
}

Mismatch mismatch_of(const ProgramDifference& d, const std::function<OperandName(const ProgramSide&, ValueId)>& operand) {
  using Kind = ProgramDifference::Kind;
  // `name` gives the name on one side.
  const auto of = [&](MismatchKind kind, auto name) -> Mismatch {
    return {kind, {name(d.first()), ""}, {name(d.second()), ""}};
  };
  const auto operand_at = [&](const ProgramSide& side) { return side.graph->inputs(side.node())[d.index]; };
  const auto first_result = [](const ProgramSide& side) { return "%" + side.graph->value_name(side.node().first_output); };
  switch (d.kind) {
    case Kind::operand_count:
      return of(MismatchKind::operand_count, [](const auto& side) { return fmt::format("{} operands", side.node().n_inputs); });
    case Kind::operand_type:
      return of(MismatchKind::type, [&](const auto& side) { return to_string(side.graph->values[operand_at(side)].type); });
    case Kind::operand:
      return of(operand(d.first(), operand_at(d.first())).kind,
                [&](const auto& side) { return operand(side, operand_at(side)).name; });
    case Kind::literal:
      return of(MismatchKind::constant, first_result);
    case Kind::result_count:
      return of(MismatchKind::type, [](const auto& side) { return fmt::format("{} results", side.node().n_outputs); });
    case Kind::result_type:
      return of(MismatchKind::type,
                [&](const auto& side) { return to_string(side.graph->output_values(side.node())[d.index].type); });
    case Kind::field:
    case Kind::region:
      return of(MismatchKind::attribute,
                [&](const auto& side) { return std::string(d.field ? d.field->name : side.node().op->name); });
    default:
      return of(MismatchKind::op, [](const auto& side) { return std::string(side.node().op->name); });
  }
}

}  // namespace tapedeck
