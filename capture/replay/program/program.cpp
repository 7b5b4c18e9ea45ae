// From a plan to kernel calls. Eager dispatch decides at each call how an operand is broadcast and which views need no kernel.
// Here the same decisions are made once, by the same rules: the traits of the op and its view rule.
//
//     plan                                       instructions
//     %t = transpose(%a)   alias of %a           none: its strides stand in the view that its readers get
//     %y = matmul(%t, %w)  arena, offset 2560    matmul(view of %a, view of %w) -> view of %y
//     %c = concat(%a, %b)  both lie in place     none
#include <tapedeck/capture/replay/program/program.h>

#include <tapedeck/capture/analysis/parts.h>
#include <tapedeck/capture/codegen/fused_kernel.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/replay/program/control_runner.h>
#include <tapedeck/capture/replay/program/fused_calls.h>
#include <tapedeck/capture/replay/program/update_groups.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/half_calls.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/ir/strides.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/fused.h>
#include <tapedeck/kernels/f32_copy.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/workspace_alignment.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <unordered_map>

namespace tapedeck::replay {

namespace {

std::int64_t item_bytes(const View& v) { return static_cast<std::int64_t>(dtype_size(v.dtype)); }

// The operand in `shape`: missing leading dimensions and dimensions of size one are repeated with stride 0. The last `kept`
// dimensions do not change.
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

// Why a device does not run this op, which it has no kernel for.
const char* why_on_host(const Op& op) {
  if (&op == &ops::cond) return "the host chooses the branch";
  if (&op == &ops::while_loop || &op == &ops::scan || &op == &ops::loop_grad) return "the host runs the passes of loops";
  if (&op == &ops::fused) return "the device has no kernel for fused nodes";
  if (op.is(kHostCall)) return "it calls a function of the program";
  return "the device has no kernel for the op";
}

// Once in a process, with the first reason: the results are the same.
void warn_of_slow_nodes(const std::string& why) {
  static std::once_flag once;
  std::call_once(once, [&] { std::fprintf(stderr, "warning: fused nodes run op by op: %s\n", why.c_str()); });
}

// ---- scratch of a device ----

constexpr std::int64_t kScratchAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment; }

// The f32 copy of a half-precision operand at this offset of the scratch block, which moves on behind it.
BufferView f32_copy_at(const BufferView& half, BufferId scratch, std::int64_t* offset) {
  const kernels::F32Copy copy = kernels::f32_copy(half.view, half.view.data);
  BufferView w = half;
  w.buffer = scratch;
  w.offset = *offset;
  w.view = copy.view;
  *offset += aligned(copy.elements * 4);
  return w;
}

BufferView once(BufferView w) {
  w.view = kernels::without_repeats(w.view);
  return w;
}

}  // namespace

// Builds a Program node by node.
class Lowering {
 public:
  Lowering(const Plan& plan, const BufferTable& buffers, Program& program, const kernels::cuda::DeviceKernels* device)
      : plan_(plan), g_(plan.graph), buffers_(buffers), program_(program), device_(device) {}

  // Compiles the kernels of all fused nodes for the device, several at a time. Nodes without a kernel run op by op.
  void compile_fused_nodes() {
    if (!device_ || device_->compute_capability() == 0) return;
    std::vector<NodeId> nodes;
    std::vector<std::vector<View>> views;  // of each node: its operands and results
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      const Node& node = g_.nodes[n];
      if (node.op != &ops::fused) continue;
      nodes.push_back(n);
      views.emplace_back();
      for (int i = 0; i < node.n_inputs; ++i) views.back().push_back(operand(n, i).view);
      for (int i = 0; i < node.n_outputs; ++i) views.back().push_back(result(n, i).view);
    }
    std::vector<codegen::FusedRequest> requests;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const Node& node = g_.nodes[nodes[k]];
      const std::span<const View> all = views[k];
      const auto n_inputs = static_cast<std::size_t>(node.n_inputs);
      requests.push_back({g_.regions_of(node)[0].get(), all.first(n_inputs), all.subspan(n_inputs)});
    }
    std::vector<codegen::FusedResult> made = codegen::compile_fused(requests, device_->compute_capability());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (made[k].kernel) fused_[nodes[k]] = std::move(made[k].kernel);
      if (!made[k].why.empty()) warn_of_slow_nodes(made[k].why);
    }
  }

  void lower(NodeId n) {
    const Node& node = g_.nodes[n];
    if (g_.literal(node)) return check_constant(n);
    if (node.op->is(kView)) return lower_view(n);
    if (node.n_regions > 0) return lower_control(n);
    lower_call(n);
  }

 private:
  [[noreturn]] void refuse(NodeId n, const std::string& why) const {
    throw InvalidGraphError(error_text(g_.nodes[n].op->name, fmt::format("{}: {}", why, g_.node_text(n)), {}));
  }

  BufferView view_of(ValueId v) const { return buffer_view_of(plan_, buffers_, v); }

  void check_constant(NodeId n) const {
    const Placement& p = plan_.values[g_.nodes[n].first_output];
    if (p.where != Where::constant || p.offset != 0 || !p.dense)
      refuse(n, "the plan puts a constant elsewhere than in its buffer");
    const Literal& literal = *g_.literal(g_.nodes[n]);
    if (&literal != &g_.constants[p.slot]) refuse(n, "the plan gives a constant the buffer of another");
    require_data(g_, g_.nodes[n]);
  }

  // The view that the rule of the op makes of its input; false if no strides express it.
  bool make_view(const Node& node, BufferView* out) const {
    const ValueId source = g_.inputs(node)[0];
    const Type& to = g_.values[node.first_output].type;
    *out = view_of(source);
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
    BufferView from, to = view_of(node.first_output);
    const bool expressible = make_view(node, &from);
    if (plan_.values[node.first_output].reason == Reason::alias) {
      if (!expressible || !same_view(from, to)) refuse(n, "the plan's alias is not the view that the op makes");
      return;
    }
    if (expressible) return copy(n, from, to);
    if (node.op->kernels[static_cast<int>(DeviceType::cpu)]) return lower_call(n);
    // A view that no strides express is a reshape of scattered elements: the same elements in the same order, packed.
    from = view_of(g_.inputs(node)[0]);
    if (from.view.numel() != to.view.numel() || !to.view.dense()) refuse(n, "this view cannot be copied");
    Shape shape;
    shape.rank = to.view.rank = from.view.rank;
    std::copy_n(from.view.sizes, from.view.rank, shape.sizes);
    std::copy_n(from.view.sizes, from.view.rank, to.view.sizes);
    dense_strides(shape, to.view.strides);
    copy(n, from, to);
  }

  static bool same_view(const BufferView& a, const BufferView& b) {
    if (a.view.numel() == 0) return true;
    if (a.buffer != b.buffer || a.offset != b.offset || a.view.rank != b.view.rank) return false;
    for (int i = 0; i < a.view.rank; ++i)
      if (a.view.sizes[i] != b.view.sizes[i] || (a.view.sizes[i] > 1 && a.view.strides[i] != b.view.strides[i])) return false;
    return true;
  }

  void copy(NodeId n, const BufferView& from, const BufferView& to) {
    static const Op* const op = find_op("copy");
    if (const KernelEntry* entry = entry_of(*op)) return call_device(n, *entry, nullptr, {from}, {to}, 0);
    add_instruction(n, op->kernels[static_cast<int>(DeviceType::cpu)], nullptr, {from}, {to});
    mark_on_host(*op);
  }

  // Does every operand of a node that only joins lie in its place already, and do the operands cover the result? Then the node
  // needs no call.
  bool has_joined(const Node& node) const {
    if (!node.op->part || node.n_outputs != 1) return false;
    const auto view_as_analysed = [&](ValueId v) {
      const BufferView own = view_of(v);
      tapedeck::Window w;
      w.root = own.buffer;
      w.offset = own.offset;
      std::copy_n(own.view.strides, own.view.rank, w.strides);
      return w;
    };
    return joined_already(g_, node, view_as_analysed) == g_.values[node.first_output].type.numel();
  }

  void lower_call(NodeId n) {
    const Node& node = g_.nodes[n];
    if (has_joined(node)) return;
    const Op& op = *node.op;
    const Kernel kernel = op.kernels[static_cast<int>(DeviceType::cpu)];
    if (!kernel) throw DeviceError(error_text(op.name, fmt::format("has no CPU kernel: {}", g_.node_text(n)), {}));
    std::vector<BufferView> inputs, outputs;
    for (int i = 0; i < node.n_inputs; ++i) inputs.push_back(operand(n, i));
    for (int i = 0; i < node.n_outputs; ++i) outputs.push_back(result(n, i));
    const bool in_f32 = runs_in_f32(op, g_.input_types(node), g_.output_types(node));
    if (const KernelEntry* entry = entry_of(op))
      return lower_device_call(n, *entry, g_.attributes(node), in_f32, inputs, outputs, 0);
    add_instruction(n, in_f32 ? f32_runner(op) : kernel, g_.attributes(node), inputs, outputs);
    if (in_f32) program_.instructions.back().call.f32_kernel = kernel;
    mark_on_host(op);
  }

  // ---- for a device ----

  using KernelEntry = kernels::cuda::KernelEntry;

  const KernelEntry* entry_of(const Op& op) const { return device_ ? device_->kernel(op.name) : nullptr; }

  // The instruction that was added last.
  void mark_on_host(const Op& op) {
    if (device_) program_.instructions.back().why_on_host = why_on_host(op);
  }

  // The first `used` bytes of the scratch block are taken.
  void lower_device_call(NodeId n, const KernelEntry& entry, const void* attrs, bool in_f32,
                         const std::vector<BufferView>& inputs, const std::vector<BufferView>& outputs, std::int64_t used) {
    if (entry.native_half || !in_f32) return call_device(n, entry, attrs, inputs, outputs, used);
    const KernelEntry* cast = device_->kernel("cast");
    if (!cast) throw DeviceError(error_text(entry.op, "the device has no kernel to convert its operands to f32", {}));
    const BufferId scratch = buffers_.count();
    const auto in_scratch = [&](const BufferView& w) {
      return kernels::is_half(w.view.dtype) ? f32_copy_at(w, scratch, &used) : w;
    };
    std::vector<BufferView> f32_inputs, f32_outputs;
    for (const BufferView& w : inputs) f32_inputs.push_back(in_scratch(w));
    for (const BufferView& w : outputs) f32_outputs.push_back(in_scratch(w));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (kernels::is_half(inputs[i].view.dtype))
        call_device(n, *cast, nullptr, {once(inputs[i])}, {once(f32_inputs[i])}, used);
    call_device(n, entry, attrs, f32_inputs, f32_outputs, used);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (kernels::is_half(outputs[i].view.dtype)) call_device(n, *cast, nullptr, {f32_outputs[i]}, {outputs[i]}, used);
  }

  // A call whose workspace begins at `offset` of the scratch block.
  void call_device(NodeId n, const KernelEntry& entry, const void* attrs, const std::vector<BufferView>& inputs,
                   const std::vector<BufferView>& outputs, std::int64_t offset) {
    std::vector<View> views;
    for (const BufferView& w : inputs) views.push_back(w.view);
    for (const BufferView& w : outputs) views.push_back(w.view);
    KernelFault fault;
    KernelCall call;
    call.inputs = views.data();
    call.outputs = views.data() + inputs.size();
    call.n_inputs = static_cast<std::int32_t>(inputs.size());
    call.n_outputs = static_cast<std::int32_t>(outputs.size());
    call.attrs = attrs;
    call.fault = &fault;
    const std::int64_t bytes = device_->workspace(entry, call);
    add_instruction(n, entry.kernel, attrs, inputs, outputs, bytes, {buffers_.count(), offset});
    program_.instructions.back().entry = &entry;
    program_.scratch_bytes = std::max(program_.scratch_bytes, offset + aligned(bytes));
  }

  void lower_control(NodeId n) {
    const Node& node = g_.nodes[n];
    std::vector<BufferView> inputs, outputs;
    for (int i = 0; i < node.n_inputs; ++i) inputs.push_back(operand(n, i));
    for (int i = 0; i < node.n_outputs; ++i) outputs.push_back(result(n, i));
    if (device_ && node.op == &ops::fused && lower_fused(n, inputs, outputs)) return;
    program_.control.push_back(make_control_runner(plan_, node));
    add_instruction(n, run_control, program_.control.back().get(), inputs, outputs);
    mark_on_host(*node.op);
  }

  // ---- fused nodes of a device ----

  // A fused node is one kernel that was compiled for it, or else the kernels of its nodes, one by one. Returns false if the
  // device lacks one of them.
  bool lower_fused(NodeId n, const std::vector<BufferView>& inputs, const std::vector<BufferView>& outputs) {
    if (fused_.count(n)) {
      program_.fused.push_back(std::move(fused_[n]));
      add_instruction(n, codegen::run_fused_kernel, program_.fused.back().get(), inputs, outputs, 0, {});
      return true;
    }
    static const Op* const copy = find_op("copy");
    const Graph& region = *g_.regions_of(g_.nodes[n])[0];
    const auto lacks = [&](const Node& node) { return !entry_of(*node.op); };
    if (std::any_of(region.nodes.begin(), region.nodes.end(), lacks) || !entry_of(*copy)) return false;
    const FusedCalls made = fused_calls(region, inputs, outputs, buffers_.count());
    program_.scratch_bytes = std::max(program_.scratch_bytes, made.scratch_bytes);
    for (const FusedCalls::Call& call : made.calls) {
      const Node& node = region.nodes[call.node];
      const bool in_f32 = runs_in_f32(*node.op, region.input_types(node), region.output_types(node));
      lower_device_call(n, *entry_of(*node.op), region.attributes(node), in_f32, call.inputs, {call.output},
                        made.scratch_bytes);
    }
    for (const FusedCalls::Copy& c : made.copies)
      call_device(n, *entry_of(*copy), nullptr, {c.from}, {c.to}, made.scratch_bytes);
    return true;
  }

  // The operand in the form that the op's kernel takes.
  BufferView operand(NodeId n, int i) const {
    const Node& node = g_.nodes[n];
    const Op& op = *node.op;
    const ValueId v = g_.inputs(node)[i];
    BufferView w = view_of(v);
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

  BufferView result(NodeId n, int i) const {
    const Node& node = g_.nodes[n];
    const ValueId v = node.first_output + i;
    const BufferView w = view_of(v);
    if (!writes_strides(*node.op, i, g_.values[v].type.shape, w.view.strides))
      refuse(n, "the plan scatters a result that must be dense");
    return w;
  }

  void add_instruction(NodeId n, Kernel kernel, const void* attrs, const std::vector<BufferView>& inputs,
                       const std::vector<BufferView>& outputs) {
    add_instruction(n, kernel, attrs, inputs, outputs, checked_workspace(n), buffers_.in_arena(plan_.workspace[n].offset));
  }

  void add_instruction(NodeId n, Kernel kernel, const void* attrs, const std::vector<BufferView>& inputs,
                       const std::vector<BufferView>& outputs, std::int64_t workspace_bytes, Address workspace) {
    Instruction instruction;
    instruction.kernel = kernel;
    instruction.node = n;
    instruction.intra_op = plan_.intra_op.empty() || plan_.intra_op[n];
    instruction.call.attrs = attrs;
    instruction.call.n_inputs = static_cast<std::int32_t>(inputs.size());
    instruction.call.n_outputs = static_cast<std::int32_t>(outputs.size());
    instruction.call.workspace_bytes = static_cast<std::size_t>(workspace_bytes);
    const auto index = static_cast<std::int32_t>(program_.instructions.size());
    program_.pending_.push_back({static_cast<std::int32_t>(program_.views_.size()), workspace});
    program_.instructions.push_back(instruction);
    bool writes_state = false;
    for (const BufferView& w : inputs) add_view(w);
    for (const BufferView& w : outputs) {
      add_view(w);
      writes_state |= w.buffer >= buffers_.first_state && w.buffer < buffers_.first_constant;
    }
    if (writes_state) program_.state_writers.push_back(index);
  }

  void add_view(const BufferView& w) {
    program_.views_.push_back(w.view);
    program_.addresses_.push_back({w.buffer, w.offset});
  }

  // The bytes that the op needs. A plan may set more aside; the kernel does not see them.
  std::int64_t checked_workspace(NodeId n) const {
    const std::int64_t needed = needed_workspace(plan_, n);
    const Scratch& scratch = plan_.workspace[n];
    if (scratch.bytes < needed)
      refuse(n, fmt::format("the plan sets {} bytes of workspace aside, the op needs {}", scratch.bytes, needed));
    if (needed > 0 && buffers_.in_arena(scratch.offset).offset % kWorkspaceAlignment != 0)
      refuse(n, "the plan's workspace is not 64-byte aligned");
    return needed;
  }

  const Plan& plan_;
  const Graph& g_;
  const BufferTable& buffers_;
  Program& program_;
  const kernels::cuda::DeviceKernels* device_;  // null: the program is for the CPU
  std::unordered_map<NodeId, std::unique_ptr<codegen::FusedKernel>> fused_;
};

Program::~Program() = default;

Program::Program(const Plan& plan, const BufferTable& buffers, const kernels::cuda::DeviceKernels* device) {
  Lowering lowering(plan, buffers, *this, device);
  lowering.compile_fused_nodes();
  for (const Segment& s : plan.segments) {
    IndexRange range;
    range.first = static_cast<std::int32_t>(instructions.size());
    for (const NodeId n : s.nodes) lowering.lower(n);
    range.end = static_cast<std::int32_t>(instructions.size());
    segments.push_back(range);
  }
  if (device) join_updates(plan.graph, *this);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    KernelCall& call = instructions[i].call;
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
  for (std::size_t i = 0; i < instructions.size(); ++i)
    instructions[i].call.workspace = instructions[i].call.workspace_bytes > 0 ? pointer(pending_[i].workspace) : nullptr;
}

}  // namespace tapedeck::replay
