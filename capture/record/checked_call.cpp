// Checked mode compares each op of a running step with the node of the capture that has the same number.
//     capture    2: add(%1, constant)       3: relu(%2)
//     this call  2: add(%1, constant)       3: tanh(%2)        CaptureMismatch: operator mismatch at node 3
// Nodes are compared by same_node(). Values from outside are compared once, when the first node reads them: a tensor must be
// the same tensor, and a constant must hold the same bytes.
#include <tapedeck/capture/record/checked_call.h>

#include <tapedeck/capture/analysis/same_program.h>
#include <tapedeck/capture/record/freeze_tape.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/site_note.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <cstring>

namespace tapedeck {

namespace {

std::string at(const std::string& site) { return site.empty() ? "" : fmt::format(" ({})", site); }

const Outside* outside_of(const Recorder& tape, ValueId v) {
  const std::int32_t k = tape.info[v].outside;
  return k == kNone ? nullptr : &tape.outside[k];
}

std::string difference_text(const ProgramDifference& d) {
  using Kind = ProgramDifference::Kind;
  const auto operand_type = [&](const ProgramSide& side) {
    return side.graph->values[side.graph->inputs(side.node())[d.index]].type;
  };
  switch (d.kind) {
    case Kind::op:
      return "operator mismatch";
    case Kind::operand_count:
      return fmt::format("operand mismatch ({} operands, then {})", d.first().node().n_inputs, d.second().node().n_inputs);
    case Kind::operand_type: {
      const Type then = operand_type(d.first()), now = operand_type(d.second());
      return fmt::format("{} mismatch of operand {} ({}, then {})", then.dtype != now.dtype ? "dtype" : "type", d.index,
                         to_string(then), to_string(now));
    }
    case Kind::operand:
      return fmt::format("operand mismatch (operand {} is another value)", d.index);
    case Kind::result_count:
    case Kind::result_type:
      return "type mismatch of results";
    default:
      return "attribute mismatch";
  }
}

// The place of the call that made a value; empty if no op of the step made it.
std::string made_at(const TapeScript& script, ValueId v) {
  const NodeId n = v == kNone ? kNone : script.graph.values[v].node;
  return n == kNone ? "" : script.graph.nodes[n].origin.site.str();
}
std::string made_at(const Recorder& tape, ValueId v) {
  const NodeId n = v == kNone ? kNone : tape.graph.values[v].node;
  return n == kNone ? "" : site_note(tape.notes[n].site).str();
}

// Reads the bytes past the capture, because the capture would refuse a host read.
bool holds(const Tensor& t, const Literal& literal) {
  if (t.type() != literal.type) return false;
  if (t.bytes() == 0 || !literal.data) return true;
  const Scoped<Recorder*> tape(thread_state().tape, thread_state().own.get());
  std::vector<unsigned char> bytes(static_cast<std::size_t>(t.bytes()));
  t.copy_to(bytes.data(), bytes.size(), dtype_size(t.dtype()));
  return std::memcmp(bytes.data(), literal.data.get(), bytes.size()) == 0;
}

}  // namespace

OperandName StreamCheck::operand_then(ValueId v) const {
  const std::int32_t k = script_.source_of[v];
  if (k == kNone) return {MismatchKind::internal_value, "%" + script_.graph.value_name(v)};
  const TapeScript::Source& source = script_.sources[k];
  switch (source.kind) {
    case TapeScript::Kind::input:
      return {MismatchKind::input, source.name};
    case TapeScript::Kind::constant:
      return {MismatchKind::constant, source.name};
    default:
      return {MismatchKind::external_tensor, source.name};
  }
}

// Inputs are declared in the same order, so they have the value numbers of the script.
OperandName StreamCheck::operand_now(const Recorder& tape, ValueId v) const {
  const Outside* o = outside_of(tape, v);
  if (!o || tape.graph.values[v].node != kNone) return {MismatchKind::internal_value, "%" + tape.graph.value_name(v)};
  const bool may_be_input = v < static_cast<ValueId>(script_.source_of.size()) && script_.source_of[v] != kNone;
  if (may_be_input && script_.sources[script_.source_of[v]].kind == TapeScript::Kind::input) return operand_then(v);
  const std::string type = to_string(o->tensor.type());
  const Name name = o->tensor.name();
  return {MismatchKind::external_tensor, name.empty() ? type : fmt::format("'{}' {}", name.view(), type)};
}

void StreamCheck::mismatch(const Recorder& tape, NodeId n, const std::string& what, Mismatch m, const std::string& more) {
  const bool captured = n < script_.n_nodes, live = n < tape.graph.node_count();
  m.captured.site = captured ? script_.graph.nodes[n].origin.site.str() : "";
  m.called.site = live ? site_note(tape.notes[n].site).str() : "";
  const std::string then = captured ? fmt::format("`{}`{}", script_.graph.node_text(n), at(m.captured.site)) : "the end";
  const std::string now = live ? fmt::format("`{}`{}", tape.graph.node_text(n), at(m.called.site)) : "the end";
  failure_ =
      m.error(error_text("capture", fmt::format("{} at node {}: the capture has {}, this call {}{}", what, n, then, now, more),
                         live ? tape.notes[n].site : Site{}));
  throw *failure_;
}

void StreamCheck::recorded(const Recorder& tape, NodeId n) {
  if (failure_) return;
  try {
    for (; next_ <= n; ++next_) compare(tape, next_);
  } catch (const CaptureError&) {  // of mismatch(), which has noted the failure
    if (throws_ == Throws::at_once) throw;
  }
}

void StreamCheck::compare(const Recorder& tape, NodeId n) {
  if (n >= script_.n_nodes)
    mismatch(tape, n, "too many ops", {MismatchKind::op_count, {"the end", ""}, {tape.graph.nodes[n].op->name, ""}});
  const ProgramSide sides[] = {{&script_.graph, n}, {&tape.graph, n}};
  const auto operand = [&](const ProgramSide& side, ValueId v) {
    return side.graph == &script_.graph ? operand_then(v) : operand_now(tape, v);
  };
  same_node(sides, [&](const ProgramDifference& d) -> bool {
    const Mismatch m = mismatch_of(d, operand);
    mismatch(tape, n, difference_text(d), m, d.kind == ProgramDifference::Kind::operand ? "; " + m.text() : "");
  });
  compare_sources(tape, n);
}

void StreamCheck::compare_sources(const Recorder& tape, NodeId n) {
  const auto operands = tape.graph.inputs(tape.graph.nodes[n]);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ValueId v = operands[i];
    const bool outside_then = script_.source_of[v] != kNone;
    const bool outside_now = outside_of(tape, v) && tape.graph.values[v].node == kNone;
    if (outside_then != outside_now) {
      const OperandName then = operand_then(v);
      const Mismatch m{then.kind, {then.name, ""}, {operand_now(tape, v).name, ""}};
      mismatch(tape, n, fmt::format("operand mismatch (operand {} is another value)", i), m, "; " + m.text());
    }
    if (outside_now) compare_source(tape, n, i, v);
  }
}

void StreamCheck::compare_source(const Recorder& tape, NodeId n, std::size_t operand, ValueId v) {
  const auto k = static_cast<std::size_t>(script_.source_of[v]);
  if (seen_[k]) return;
  seen_[k] = true;
  const TapeScript::Source& then = script_.sources[k];
  const Tensor& now = outside_of(tape, v)->tensor;
  const auto differs = [&](MismatchKind kind) -> Mismatch { return {kind, {then.name, ""}, {operand_now(tape, v).name, ""}}; };
  switch (then.kind) {
    case TapeScript::Kind::input:
      return;  // inputs are declared in the same order, so the value number says it
    case TapeScript::Kind::tensor:
      if (then.tensor.impl() != now.impl())
        mismatch(tape, n,
                 fmt::format("operand mismatch (operand {} was the tensor {}, and is another tensor now)", operand, then.name),
                 differs(MismatchKind::external_tensor));
      return;
    case TapeScript::Kind::gradient:
      return;
    case TapeScript::Kind::constant:
      if (!holds(now, then.literal))
        mismatch(
            tape, n,
            fmt::format("constant differs (operand {}, {}; pass it as an input, or make it a HostScalar)", operand, then.name),
            differs(MismatchKind::constant));
      return;
  }
}

void StreamCheck::finish(const Recorder& tape, const std::vector<Tensor>& outputs) {
  if (tape.graph.node_count() > 0) recorded(tape, tape.graph.node_count() - 1);
  if (failure_) throw *failure_;
  const NodeId n = tape.graph.node_count();
  if (n < script_.n_nodes)
    mismatch(tape, n, "too few ops", {MismatchKind::op_count, {script_.graph.nodes[n].op->name, ""}, {"the end", ""}});
  check_results(tape, outputs);
  check_writes(tape);
}

void StreamCheck::check_results(const Recorder& tape, const std::vector<Tensor>& outputs) const {
  const auto count = [](std::size_t n) -> MismatchSide { return {fmt::format("{} results", n), ""}; };
  if (outputs.size() != script_.outputs.size())
    throw CaptureMismatch(
        MismatchKind::result_count, count(script_.outputs.size()), count(outputs.size()),
        error_text("capture",
                   fmt::format("the step returned {} results, {} in the capture", outputs.size(), script_.outputs.size()), {}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ValueId v = kNone;
    for (const Outside& o : tape.outside)
      if (o.tensor.impl() == outputs[i].impl()) v = o.last;
    if (v == kNone && tape.owns(*outputs[i].impl())) v = tape.bound_value(*outputs[i].impl());
    const ValueId then = script_.outputs[i];
    if (v == then) continue;
    const char* unknown = "a tensor that no op of the step read or made";
    throw CaptureMismatch(
        MismatchKind::result, {then == kNone ? unknown : operand_then(then).name, made_at(script_, then)},
        {v == kNone ? unknown : operand_now(tape, v).name, made_at(tape, v)},
        error_text("capture", fmt::format("result {} of the step is another value than in the capture", i), {}));
  }
}

void StreamCheck::check_writes(const Recorder& tape) const {
  for (const Outside& o : tape.outside) {
    const std::int32_t k = o.first < static_cast<ValueId>(script_.source_of.size()) ? script_.source_of[o.first] : kNone;
    if (k == kNone || script_.sources[k].last == o.last) continue;
    const TapeScript::Source& then = script_.sources[k];
    throw CaptureMismatch(MismatchKind::write, {then.name, made_at(script_, then.last)}, {then.name, made_at(tape, o.last)},
                          error_text("capture", fmt::format("the step wrote {} otherwise than in the capture", then.name), {}));
  }
}

}  // namespace tapedeck
