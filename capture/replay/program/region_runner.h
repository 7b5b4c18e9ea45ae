// One region of a node, ready to run: its plan as a Program, as an executor has one of its graph. The buffers of the region are
// the operands of the node and a frame inside the workspace of the node.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/program/buffer_table.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace tapedeck::replay {

class RegionRunner {
 public:
  explicit RegionRunner(std::shared_ptr<const Plan> plan);

  void input(std::size_t k, const void* data) { bases_[table_.input(static_cast<std::int32_t>(k))] = const_cast<void*>(data); }
  std::size_t n_outputs() const { return outputs_.size(); }

  // Runs in `frame`. False if a kernel reported a fault.
  bool run(char* frame, KernelFault* fault);

  // After run(), while the frame is as run() left it:
  void copy_output(std::size_t k, void* to) const noexcept;  // output k, dense, to this address
  bool truth() const noexcept;                               // output 0, of a condition

 private:
  bool is_input(const BufferView& w) const { return w.buffer >= table_.input(0) && w.buffer < table_.first_state; }
  void copy_view(BufferView from, void* to) const noexcept;

  const std::shared_ptr<const Plan> plan_;
  const BufferTable table_;
  Program program_;
  std::vector<void*> bases_;  // by buffer
  std::vector<BufferView> outputs_;
  std::vector<char*> staged_;  // by output: its copy in the frame, if it is an input
};

// ---- operands and workspace of a node with regions ----

char* bytes_of(const View& v);
std::size_t byte_count(const View& v);
void copy_bytes(void* to, const void* from, std::size_t n);  // of a tensor without elements the address may be null
void clear(const View& v);
std::size_t slice_bytes(const View& stack);  // from one slice along the first axis to the next
char* frame_in(const KernelCall& call);      // in the workspace (region_frames.h)

// Sets the inputs of the region of a loop for pass i: index, slices, captured. The caller sets the carried inputs. `first`: the
// operand of the node that is the first carried one.
void give_pass(RegionRunner& region, const KernelCall& call, std::size_t first, std::size_t carried, std::size_t scanned,
               std::size_t operands, std::int64_t i);

}  // namespace tapedeck::replay
