// From a plan to kernel calls. Eager dispatch decides at each call which operands are broadcast and which views need no kernel.
// The same decisions are made here once, by the same rules: the traits of the op and its view rule.
#include <tapedeck/capture/replay/program.h>

#include <tapedeck/capture/analysis/parts.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/replay/control_step.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/ir/strides.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/workspace_alignment.h>

#include <fmt/format.h>
#include <algorithm>

namespace tapedeck::replay {

namespace {

std::int64_t item_bytes(const View& v) { return static_cast<std::int64_t>(dtype_size(v.dtype)); }

// The operand as seen from `shape`: missing leading dimensions and dimensions of size one are repeated with stride 0. The last
// `kept` dimensions do not change.
View expanded(const View& v, const Shape& shape, int kept) {
  View out = v;
  out.rank = shape.rank;
  const int missing = shape.rank - v.rank;
  for (int i = 0; i < shape.rank; ++i) {
    const int from = i - missing;
    const bool keep = i >= shape.rank - kept;
    const bool repeat = from < 0 || (!keep && v.sizes[from] == 1 && shape[i] != 1);
    out.sizes[i] = keep && from >= 0 ? v.sizes[from] : shape[i];
    out.strides[i] = repeat ? 0 : v.strides[from];
  }
  return out;
}

bool broadcasts(const View& v, const Shape& shape, int kept) {
  if (v.rank > shape.rank || v.rank < kept) return false;
  const int missing = shape.rank - v.rank;
  for (int i = 0; i < v.rank - kept; ++i)
    if (v.sizes[i] != 1 && v.sizes[i] != shape[i + missing]) return false;
  return true;
}

}  // namespace

BufferTable::BufferTable(const Plan& plan) : chunks(plan) {
  const Graph& g = plan.graph;
  bytes.push_back(chunks.bytes(0));
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) bytes.push_back(g.values[v].type.bytes());
  first_state = 1 + g.n_inputs;
  first_constant = first_state + g.n_state;
  first_output = first_constant + static_cast<BufferId>(g.constants.size());
  bytes.resize(static_cast<std::size_t>(first_output), -1);
  for (const Placement& p : plan.values)
    if (p.where == Where::constant) bytes[constant(p.slot)] = g.constants[p.slot].type.bytes();
  for (const Type& t : plan.output_slots) bytes.push_back(t.bytes());
  first_chunk = static_cast<BufferId>(bytes.size());
  for (std::int32_t c = 1; c < chunks.count(); ++c) bytes.push_back(chunks.bytes(c));
}

Address BufferTable::in_arena(std::int64_t offset) const {
  const std::int32_t c = chunks.of(offset);
  return {chunk(c), offset - chunks.start(c)};
}

BufferId BufferTable::of(const Placement& p) const {
  switch (p.where) {
    case Where::nowhere:
      return kNone;
    case Where::arena:
      return in_arena(p.offset).buffer;
    case Where::input:
      return input(p.slot);
    case Where::state:
      return state(p.slot);
    case Where::constant:
      return constant(p.slot);
    case Where::output:
      return output(p.slot);
  }
  return kNone;
}

Window window_of(const Plan& plan, const BufferTable& buffers, ValueId v) {
  const Placement& p = plan.values[v];
  const Type& type = plan.graph.values[v].type;
  Window w;
  w.buffer = buffers.of(p);
  w.offset = p.where == Where::arena ? buffers.in_arena(p.offset).offset : p.offset;
  if (w.buffer == kNone && type.bytes() > 0)
    throw InvalidGraphError(fmt::format("the plan has no place for %{}: {}", plan.graph.value_name(v), to_string(type)));
  w.view.dtype = type.dtype;
  w.view.rank = type.shape.rank;
  std::copy_n(type.shape.sizes, type.shape.rank, w.view.sizes);
  if (p.dense)
    dense_strides(type.shape, w.view.strides);
  else
    std::copy_n(p.strides, type.shape.rank, w.view.strides);
  return w;
}

// Builds a Program node by node.
class Lowering {
 public:
  Lowering(const Plan& plan, const BufferTable& buffers, Program& program)
      : plan_(plan), g_(plan.graph), buffers_(buffers), program_(program) {}

  void lower(NodeId n) {
    const Node& node = g_.nodes[n];
    if (g_.literal(node)) return check_constant(n);
    if (node.op->is(kView)) return lower_view(n);
    if (node.n_regions > 0) return lower_control(n);
    lower_call(n);
  }

 private:
  [[noreturn]] void refuse(NodeId n, const std::string& why) const {
    throw InvalidGraphError(fmt::format("[{}] {}: {}", g_.nodes[n].op->name, why, g_.node_text(n)));
  }

  Window window(ValueId v) const { return window_of(plan_, buffers_, v); }

  void check_constant(NodeId n) const {
    const Placement& p = plan_.values[g_.nodes[n].first_output];
    if (p.where != Where::constant || p.offset != 0 || !p.dense)
      refuse(n, "the plan puts a constant elsewhere than in its buffer");
    const Literal& literal = *g_.literal(g_.nodes[n]);
    if (&literal != &g_.constants[p.slot]) refuse(n, "the plan gives a constant the buffer of another");
    if (!literal.data && literal.type.bytes() > 0)
      throw ExecutionError(fmt::format("[constant] %{}: {} is abstract: its data was not recorded",
                                       g_.value_name(g_.nodes[n].first_output), to_string(literal.type)));
  }

  // The window that the op's view rule opens on its input; false if no strides express it.
  bool view_window(const Node& node, Window* out) const {
    const ValueId source = g_.inputs(node)[0];
    const Type& to = g_.values[node.first_output].type;
    *out = window(source);
    std::int64_t strides[kMaxRank] = {}, offset = 0;
    if (!node.op->view || !node.op->view(g_.values[source].type, out->view.strides, g_.attributes(node), to, &offset, strides))
      return false;
    out->offset += offset * item_bytes(out->view);
    out->view.rank = to.shape.rank;
    std::copy_n(to.shape.sizes, to.shape.rank, out->view.sizes);
    std::copy_n(strides, to.shape.rank, out->view.strides);
    return true;
  }

  void lower_view(NodeId n) {
    const Node& node = g_.nodes[n];
    Window from, to = window(node.first_output);
    const bool expressible = view_window(node, &from);
    if (plan_.values[node.first_output].reason == Reason::alias) {
      if (!expressible || !same_window(from, to)) refuse(n, "the plan's alias is not the view that the op makes");
      return;
    }
    if (expressible) return copy(n, from, to);
    if (node.op->kernels[static_cast<int>(DeviceType::cpu)]) return lower_call(n);
    // A view that no strides express is a reshape of scattered elements: the same elements in the same order, packed.
    from = window(g_.inputs(node)[0]);
    if (from.view.numel() != to.view.numel() || !to.view.dense()) refuse(n, "this view cannot be copied");
    Shape shape;
    shape.rank = to.view.rank = from.view.rank;
    std::copy_n(from.view.sizes, from.view.rank, shape.sizes);
    std::copy_n(from.view.sizes, from.view.rank, to.view.sizes);
    dense_strides(shape, to.view.strides);
    copy(n, from, to);
  }

  static bool same_window(const Window& a, const Window& b) {
    if (a.view.numel() == 0) return true;
    if (a.buffer != b.buffer || a.offset != b.offset || a.view.rank != b.view.rank) return false;
    for (int i = 0; i < a.view.rank; ++i)
      if (a.view.sizes[i] != b.view.sizes[i] || (a.view.sizes[i] > 1 && a.view.strides[i] != b.view.strides[i])) return false;
    return true;
  }

  void copy(NodeId n, const Window& from, const Window& to) {
    static const Op* const op = find_op("copy");
    add_step(n, op->kernels[static_cast<int>(DeviceType::cpu)], nullptr, {from}, {to});
  }

  // Does every operand of a node that only joins lie in its place already, and do the operands cover the result? Then the node
  // needs no call.
  bool has_joined(const Node& node) const {
    if (!node.op->part || node.n_outputs != 1) return false;
    const auto window_as_analysed = [&](ValueId v) {
      const Window own = window(v);
      tapedeck::Window w;
      w.root = own.buffer;
      w.offset = own.offset;
      std::copy_n(own.view.strides, own.view.rank, w.strides);
      return w;
    };
    return joined_already(g_, node, window_as_analysed) == g_.values[node.first_output].type.numel();
  }

  void lower_call(NodeId n) {
    const Node& node = g_.nodes[n];
    if (has_joined(node)) return;
    const Op& op = *node.op;
    const Kernel kernel = op.kernels[static_cast<int>(DeviceType::cpu)];
    if (!kernel) throw DeviceError(fmt::format("[{}] has no CPU kernel: {}", op.name, g_.node_text(n)));
    std::vector<Window> inputs, outputs;
    for (int i = 0; i < node.n_inputs; ++i) inputs.push_back(operand(n, i));
    for (int i = 0; i < node.n_outputs; ++i) outputs.push_back(result(n, i));
    const bool in_f32 = runs_in_f32(op, g_.input_types(node), g_.output_types(node));
    add_step(n, in_f32 ? kernels::run_in_f32 : kernel, g_.attributes(node), inputs, outputs);
    if (in_f32) program_.steps.back().call.f32_kernel = kernel;
  }

  void lower_control(NodeId n) {
    const Node& node = g_.nodes[n];
    std::vector<Window> inputs, outputs;
    for (int i = 0; i < node.n_inputs; ++i) inputs.push_back(operand(n, i));
    for (int i = 0; i < node.n_outputs; ++i) outputs.push_back(result(n, i));
    program_.control.push_back(make_control_step(plan_, node));
    add_step(n, run_control_step, program_.control.back().get(), inputs, outputs);
  }

  // The operand in the form that the op's kernel takes.
  Window operand(NodeId n, int i) const {
    const Node& node = g_.nodes[n];
    const Op& op = *node.op;
    const ValueId v = g_.inputs(node)[i];
    Window w = window(v);
    if (!takes_strides(op, i, g_.values[v].type.shape, w.view.strides))
      refuse(n, fmt::format("the plan gives the kernel %{} in strides that it does not take", g_.value_name(v)));
    if (op.is(kElementwise) || op.is(kMatrixStrides)) {
      const int kept = op.is(kElementwise) ? 0 : 2;
      const Shape& shape = g_.values[node.first_output].type.shape;
      if (!broadcasts(w.view, shape, kept)) refuse(n, "an operand does not broadcast to the result");
      w.view = expanded(w.view, shape, kept);
    }
    return w;
  }

  Window result(NodeId n, int i) const {
    const Node& node = g_.nodes[n];
    const ValueId v = node.first_output + i;
    const Window w = window(v);
    if (!writes_strides(*node.op, i, g_.values[v].type.shape, w.view.strides))
      refuse(n, "the plan scatters a result that must be dense");
    return w;
  }

  void add_step(NodeId n, Kernel kernel, const void* attrs, const std::vector<Window>& inputs,
                const std::vector<Window>& outputs) {
    check_workspace(n);
    Step step;
    step.kernel = kernel;
    step.node = n;
    step.intra_op = plan_.intra_op.empty() || plan_.intra_op[n];
    step.call.attrs = attrs;
    step.call.n_inputs = static_cast<std::int32_t>(inputs.size());
    step.call.n_outputs = static_cast<std::int32_t>(outputs.size());
    step.call.workspace_bytes = static_cast<std::size_t>(plan_.workspace[n].bytes);
    const auto index = static_cast<std::int32_t>(program_.steps.size());
    program_.pending_.push_back(
        {static_cast<std::int32_t>(program_.views_.size()), buffers_.in_arena(plan_.workspace[n].offset)});
    program_.steps.push_back(step);
    bool writes_state = false;
    for (const Window& w : inputs) add_view(w);
    for (const Window& w : outputs) {
      add_view(w);
      writes_state |= w.buffer >= buffers_.first_state && w.buffer < buffers_.first_constant;
    }
    if (writes_state) program_.state_writers.push_back(index);
  }

  void add_view(const Window& w) {
    program_.views_.push_back(w.view);
    program_.addresses_.push_back({w.buffer, w.offset});
  }

  void check_workspace(NodeId n) const {
    const std::int64_t needed = needed_workspace(plan_, n);
    const Scratch& scratch = plan_.workspace[n];
    if (scratch.bytes != needed)
      refuse(n, fmt::format("the plan sets {} bytes of workspace aside, the op needs {}", scratch.bytes, needed));
    if (needed > 0 && buffers_.in_arena(scratch.offset).offset % kWorkspaceAlignment != 0)
      refuse(n, "the plan's workspace is not 64-byte aligned");
  }

  const Plan& plan_;
  const Graph& g_;
  const BufferTable& buffers_;
  Program& program_;
};

Program::~Program() = default;

Program::Program(const Plan& plan, const BufferTable& buffers) {
  Lowering lowering(plan, buffers, *this);
  for (const Segment& s : plan.segments) {
    StepRange range;
    range.first = static_cast<std::int32_t>(steps.size());
    for (const NodeId n : s.nodes) lowering.lower(n);
    range.end = static_cast<std::int32_t>(steps.size());
    segments.push_back(range);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    KernelCall& call = steps[i].call;
    call.inputs = views_.data() + pending_[i].first_view;
    call.outputs = call.inputs + call.n_inputs;
  }
}

void Program::resolve(const std::vector<void*>& bases) {
  const auto pointer = [&](const Address& at) -> void* {
    if (at.buffer == kNone || !bases[at.buffer]) return nullptr;
    return static_cast<char*>(bases[at.buffer]) + at.offset;
  };
  for (std::size_t i = 0; i < views_.size(); ++i) views_[i].data = pointer(addresses_[i]);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i].call.workspace = steps[i].call.workspace_bytes > 0 ? pointer(pending_[i].workspace) : nullptr;
}

}  // namespace tapedeck::replay
