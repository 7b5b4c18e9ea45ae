// Checked mode compares each op of a running step with the node of the capture that has the same number.
//     capture    2: add(%1, constant)       3: relu(%2)
//     this call  2: add(%1, constant)       3: tanh(%2)        CaptureError: operator mismatch at node 3
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

void StreamCheck::mismatch(const Recorder& tape, NodeId n, const std::string& what) {
  const bool captured = n < script_.n_nodes, live = n < tape.graph.node_count();
  const std::string then =
      captured ? fmt::format("`{}`{}", script_.graph.node_text(n), at(script_.graph.nodes[n].origin.site.str())) : "the end";
  const std::string now =
      live ? fmt::format("`{}`{}", tape.graph.node_text(n), at(site_note(tape.notes[n].site).str())) : "the end";
  failure_ = fmt::format("{} at node {}: the capture has {}, this call {}", what, n, then, now);
  throw CaptureError(error_text("capture", failure_, live ? tape.notes[n].site : Site{}));
}

void StreamCheck::recorded(const Recorder& tape, NodeId n) {
  if (!failure_.empty()) return;
  try {
    for (; next_ <= n; ++next_) compare(tape, next_);
  } catch (const CaptureError&) {  // of mismatch(), which has noted the failure
    if (throws_ == Throws::at_once) throw;
  }
}

void StreamCheck::compare(const Recorder& tape, NodeId n) {
  if (n >= script_.n_nodes) mismatch(tape, n, "too many ops");
  const ProgramSide sides[] = {{&script_.graph, n}, {&tape.graph, n}};
  same_node(sides, [&](const ProgramDifference& d) -> bool { mismatch(tape, n, difference_text(d)); });
  compare_sources(tape, n);
}

void StreamCheck::compare_sources(const Recorder& tape, NodeId n) {
  const auto operands = tape.graph.inputs(tape.graph.nodes[n]);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ValueId v = operands[i];
    const bool outside_then = script_.source_of[v] != kNone;
    const bool outside_now = outside_of(tape, v) && tape.graph.values[v].node == kNone;
    if (outside_then != outside_now) mismatch(tape, n, fmt::format("operand mismatch (operand {} is another value)", i));
    if (outside_now) compare_source(tape, n, i, v);
  }
}

void StreamCheck::compare_source(const Recorder& tape, NodeId n, std::size_t operand, ValueId v) {
  const auto k = static_cast<std::size_t>(script_.source_of[v]);
  if (seen_[k]) return;
  seen_[k] = true;
  const TapeScript::Source& then = script_.sources[k];
  const Tensor& now = outside_of(tape, v)->tensor;
  switch (then.kind) {
    case TapeScript::Kind::input:
      return;  // inputs are declared in the same order, so the value number says it
    case TapeScript::Kind::tensor:
      if (then.tensor.impl() != now.impl())
        mismatch(tape, n,
                 fmt::format("operand mismatch (operand {} was the tensor {}, and is another tensor now)", operand, then.name));
      return;
    case TapeScript::Kind::gradient:
      return;
    case TapeScript::Kind::constant:
      if (!holds(now, then.literal))
        mismatch(
            tape, n,
            fmt::format("constant differs (operand {}, {}; pass it as an input, or make it a HostScalar)", operand, then.name));
      return;
  }
}

void StreamCheck::finish(const Recorder& tape, const std::vector<Tensor>& outputs) {
  if (tape.graph.node_count() > 0) recorded(tape, tape.graph.node_count() - 1);
  if (!failure_.empty()) throw CaptureError(error_text("capture", failure_, {}));
  if (tape.graph.node_count() < script_.n_nodes) mismatch(tape, tape.graph.node_count(), "too few ops");
  if (outputs.size() != script_.outputs.size())
    throw CaptureError(error_text(
        "capture", fmt::format("the step returned {} results, {} in the capture", outputs.size(), script_.outputs.size()), {}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ValueId v = kNone;
    for (const Outside& o : tape.outside)
      if (o.tensor.impl() == outputs[i].impl()) v = o.last;
    if (v == kNone && tape.owns(*outputs[i].impl())) v = tape.bound_value(*outputs[i].impl());
    if (v != script_.outputs[i])
      throw CaptureError(
          error_text("capture", fmt::format("result {} of the step is another value than in the capture", i), {}));
  }
  for (const Outside& o : tape.outside) {
    const std::int32_t k = o.first < static_cast<ValueId>(script_.source_of.size()) ? script_.source_of[o.first] : kNone;
    if (k != kNone && script_.sources[k].last != o.last)
      throw CaptureError(
          error_text("capture", fmt::format("the step wrote {} otherwise than in the capture", script_.sources[k].name), {}));
  }
}

}  // namespace tapedeck
