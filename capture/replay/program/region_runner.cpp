// Runs a region in a frame:
//
//     frame   | arena of the region | output slots | copies of outputs that are inputs |
//
// An output that is an input of the region is copied out at the end, because the next pass overwrites its bytes.
#include <tapedeck/capture/replay/program/region_runner.h>

#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/engine/ir/op.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tapedeck::replay {

// Constants are read where the graph keeps them.
RegionRunner::RegionRunner(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), table_(*plan_), program_(*plan_, table_), bases_(table_.bytes.size()) {
  const Graph& g = plan_->graph;
  for (std::size_t c = 0; c < g.constants.size(); ++c)
    bases_[table_.constant(static_cast<BufferId>(c))] = const_cast<void*>(g.constants[c].data.get());  // never written
  for (ValueId v : g.outputs) outputs_.push_back(buffer_view_of(*plan_, table_, v));
  staged_.resize(outputs_.size());
}

bool RegionRunner::run(char* frame, KernelFault* fault) {
  stop_if_interrupted();
  bases_[0] = frame;
  frame += framed(plan_->arena_bytes);
  for (std::size_t s = 0; s < plan_->output_slots.size(); ++s) {
    bases_[table_.output(static_cast<std::int32_t>(s))] = frame;
    frame += framed(plan_->output_slots[s].bytes());
  }
  program_.resolve(bases_);
  for (Instruction& instruction : program_.instructions) {
    instruction.call.fault = fault;
    instruction.kernel(instruction.call);
    if (fault->what.load(std::memory_order_relaxed)) return false;
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (!is_input(outputs_[k])) continue;
    copy_view(outputs_[k], frame);
    staged_[k] = frame;
    frame += framed(static_cast<std::int64_t>(byte_count(outputs_[k].view)));
  }
  return true;
}

void RegionRunner::copy_output(std::size_t k, void* to) const noexcept {
  if (staged_[k])
    copy_bytes(to, staged_[k], byte_count(outputs_[k].view));
  else
    copy_view(outputs_[k], to);
}

bool RegionRunner::truth() const noexcept {
  bool value = false;
  copy_output(0, &value);
  return value;
}

void RegionRunner::copy_view(BufferView from, void* to) const noexcept {
  const std::size_t bytes = byte_count(from.view);
  if (bytes == 0) return;
  from.view.data = static_cast<char*>(bases_[from.buffer]) + from.offset;
  if (from.view.dense()) {
    std::memmove(to, from.view.data, bytes);
    return;
  }
  static const Op* const copy = find_op("copy");
  View out = from.view;
  out.data = to;
  Shape shape;
  shape.rank = out.rank;
  std::copy_n(out.sizes, out.rank, shape.sizes);
  dense_strides(shape, out.strides);
  KernelFault fault;
  KernelCall call;
  call.inputs = &from.view;
  call.outputs = &out;
  call.n_inputs = call.n_outputs = 1;
  call.fault = &fault;
  copy->kernels[static_cast<int>(DeviceType::cpu)](call);
}

// ---- operands and workspace of a node with regions ----

namespace {
std::int64_t* index_in(const KernelCall& call) { return static_cast<std::int64_t*>(call.workspace); }
}  // namespace

char* bytes_of(const View& v) { return static_cast<char*>(v.data); }

std::size_t byte_count(const View& v) { return static_cast<std::size_t>(v.numel()) * dtype_size(v.dtype); }

void copy_bytes(void* to, const void* from, std::size_t n) {
  if (n > 0) std::memcpy(to, from, n);
}

void clear(const View& v) {
  if (byte_count(v) > 0) std::memset(v.data, 0, byte_count(v));
}

std::size_t slice_bytes(const View& stack) {
  return stack.sizes[0] > 0 ? byte_count(stack) / static_cast<std::size_t>(stack.sizes[0]) : 0;
}

char* frame_in(const KernelCall& call) { return static_cast<char*>(call.workspace) + kFrameAlignment; }

void give_pass(RegionRunner& region, const KernelCall& call, std::size_t first, std::size_t carried, std::size_t scanned,
               std::size_t operands, std::int64_t i) {
  *index_in(call) = i;
  region.input(0, index_in(call));
  for (std::size_t j = carried; j < operands; ++j) {
    const View& x = call.inputs[first + j];
    region.input(1 + j, j < carried + scanned ? bytes_of(x) + static_cast<std::size_t>(i) * slice_bytes(x) : bytes_of(x));
  }
}

}  // namespace tapedeck::replay
