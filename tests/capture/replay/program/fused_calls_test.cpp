// Tests fused nodes as calls one by one: run by the kernels of the CPU on real memory, they give the bits of the interpreter,
// also where results lie on operands.
#include <tapedeck/capture/replay/program/fused_calls.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/tests/capture/codegen/random_region.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tapedeck::replay {
namespace {

using test::FusedCase;

// Buffer k is that of operand k, then come those of the results, then the scratch block.
class Memory {
 public:
  explicit Memory(FusedCase& c) : case_(c) {
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      inputs.push_back({c.input_views[k], static_cast<BufferId>(k), 0});
      bases_.push_back(c.inputs[k].bytes.data());
    }
    for (std::size_t k = 0; k < c.outputs.size(); ++k) {
      outputs.push_back({c.output_views[k], static_cast<BufferId>(bases_.size()), 0});
      bases_.push_back(c.outputs[k].bytes.data());
    }
  }

  BufferId scratch() const { return static_cast<BufferId>(bases_.size()); }

  // Lets a result lie on an operand of its type and layout, in the memory of the result. Returns whether there is one.
  bool share() {
    for (std::size_t k = 0; k < outputs.size(); ++k)
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const View &in = inputs[i].view, &out = outputs[k].view;
        const bool equal = in.dtype == out.dtype && std::equal(in.strides, in.strides + in.rank, out.strides);
        if (!equal || out.numel() < 2) continue;
        const std::size_t bytes = std::min(case_.inputs[i].bytes.size(), case_.outputs[k].bytes.size());
        std::copy_n(case_.inputs[i].bytes.begin(), bytes, case_.outputs[k].bytes.begin());
        inputs[i] = outputs[k];
        return true;
      }
    return false;
  }

  void run(const FusedCalls& made) {
    scratch_.assign(static_cast<std::size_t>(made.scratch_bytes), 0xCD);
    for (const FusedCalls::Call& call : made.calls) {
      const Graph& g = case_.region;
      const Node& node = g.nodes[call.node];
      const bool in_f32 = runs_in_f32(*node.op, g.input_types(node), g.output_types(node));
      run_kernel(node.op->kernels[static_cast<int>(DeviceType::cpu)], in_f32, g.attributes(node), call.inputs, call.output);
    }
    for (const FusedCalls::Copy& copy : made.copies)
      run_kernel(find_op("copy")->kernels[static_cast<int>(DeviceType::cpu)], false, nullptr, {copy.from}, copy.to);
  }

  std::vector<BufferView> inputs, outputs;

 private:
  View resolved(const BufferView& w) {
    EXPECT_LE(w.buffer, scratch());
    unsigned char* const base = w.buffer == scratch() ? scratch_.data() : bases_[static_cast<std::size_t>(w.buffer)];
    if (w.buffer == scratch()) {
      EXPECT_EQ(w.offset % 256, 0);
      EXPECT_LE(w.offset + w.view.numel() * static_cast<std::int64_t>(dtype_size(w.view.dtype)),
                static_cast<std::int64_t>(scratch_.size()));
    }
    View v = w.view;
    v.data = base + w.offset;
    return v;
  }

  void run_kernel(Kernel kernel, bool in_f32, const void* attrs, const std::vector<BufferView>& operands,
                  const BufferView& result) {
    std::vector<View> views;
    for (const BufferView& w : operands) views.push_back(resolved(w));
    const View out = resolved(result);
    KernelFault fault;
    KernelCall call;
    call.inputs = views.data();
    call.n_inputs = static_cast<std::int32_t>(views.size());
    call.outputs = &out;
    call.n_outputs = 1;
    call.attrs = attrs;
    call.fault = &fault;
    std::vector<char> workspace(static_cast<std::size_t>(operands.size() + 1) * (out.numel() * 4 + 64) + 64);
    call.workspace = workspace.data();
    call.workspace_bytes = workspace.size();
    if (in_f32) call.f32_kernel = kernel;
    (in_f32 ? kernels::run_in_f32 : kernel)(call);
    EXPECT_EQ(fault.what.load(), nullptr);
  }

  FusedCase& case_;
  std::vector<unsigned char*> bases_;
  std::vector<unsigned char> scratch_;
};

TEST(FusedCalls, GiveTheBitsOfTheInterpreter) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    FusedCase c = test::RandomRegion(seed).make("calls");
    Memory memory(c);
    memory.run(fused_calls(c.region, memory.inputs, memory.outputs, memory.scratch()));
    c.expect_results("seed " + std::to_string(seed));
  }
}

TEST(FusedCalls, KeepAnOperandUntilItsLastReader) {
  int shared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    FusedCase c = test::RandomRegion(seed).make("calls");
    Memory memory(c);
    if (!memory.share()) continue;
    ++shared;
    const FusedCalls made = fused_calls(c.region, memory.inputs, memory.outputs, memory.scratch());
    EXPECT_EQ(made.copies.size(), 1u);
    memory.run(made);
    c.expect_results("seed " + std::to_string(seed));
  }
  EXPECT_GT(shared, 20);
}

TEST(FusedCalls, UseSlotsAgain) {
  Graph g;
  ValueId v = g.add_input("x", {DType::f32, {100}});
  for (int i = 0; i < 10; ++i) v = test::append(&g, ops::tanh, {v});
  test::give(&g, v);
  FusedCase c(std::move(g), "chain", {full({100}, 0.5)});
  Memory memory(c);
  const FusedCalls made = fused_calls(c.region, memory.inputs, memory.outputs, memory.scratch());
  EXPECT_EQ(made.scratch_bytes, 2 * 512);
  EXPECT_TRUE(made.copies.empty());
  memory.run(made);
  c.expect_results("a chain");
}

}  // namespace
}  // namespace tapedeck::replay
