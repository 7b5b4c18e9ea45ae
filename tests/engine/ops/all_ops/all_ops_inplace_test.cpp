// Tests the in-place rules of the op blocks. Writing a result over its operand's bytes must give the bits of a result in
// fresh memory.
#include <tapedeck/tests/engine/layouts.h>
#include <tapedeck/tests/engine/seeds.h>

#include <cstring>

namespace tapedeck::testing {
namespace {

constexpr DType kBothReals[] = {DType::f32, DType::f64};

bool fits(const InplacePair& pair, const std::vector<Tensor>& operands, const std::vector<Tensor>& results) {
  return pair.input < static_cast<int>(operands.size()) && pair.output < static_cast<int>(results.size()) &&
         operands[pair.input].type() == results[pair.output].type();
}

// Calls the kernel directly, with result `pair.output` on the bytes of operand `pair.input`.
std::vector<Tensor> run_kernel_over(const Example& e, const std::vector<Tensor>& operands, const std::vector<Tensor>& like,
                                    const InplacePair& pair) {
  std::vector<Tensor> results;
  for (const Tensor& y : like) results.push_back(empty(y.type()));
  results[pair.output] = operands[pair.input];
  std::vector<View> in(operands.size() + 1), out(results.size());
  std::vector<Type> in_types, out_types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (e.op->is(kElementwise))
      detail::fill_view_expanded(*operands[i].impl(), like[0].shape(), &in[i]);
    else
      detail::fill_view(*operands[i].impl(), &in[i]);
    in_types.push_back(operands[i].type());
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    detail::fill_view(*results[k].impl(), &out[k]);
    out_types.push_back(results[k].type());
  }
  const Buffer workspace(Allocator::host(), workspace_bytes(*e.op, in_types, out_types, e.attrs()));
  KernelFault fault;
  KernelCall call;
  call.inputs = in.data();
  call.outputs = out.data();
  call.n_inputs = static_cast<std::int32_t>(operands.size());
  call.n_outputs = static_cast<std::int32_t>(results.size());
  call.attrs = e.attrs();
  call.workspace = workspace.data();
  call.workspace_bytes = static_cast<std::size_t>(workspace.bytes());
  call.fault = &fault;
  e.op->kernels[0](call);
  EXPECT_EQ(fault.what.load(), nullptr);
  return results;
}

void expect_every_pair(const Example& e, DType real) {
  const std::vector<Tensor> fresh = run(e, make_operands(e, real, 4));
  for (const InplacePair& pair : e.op->inplace) {
    const std::vector<Tensor> operands = make_operands(e, real, 4);
    if (!e.op->kernels[0] || !fits(pair, operands, fresh)) continue;
    const std::string what = "result " + std::to_string(pair.output) + " over operand " + std::to_string(pair.input);
    expect_equal_bits(run_kernel_over(e, operands, fresh, pair), fresh, dtype_name(real) + (", " + what));
  }
}

TEST(AllOpsInPlace, EveryPairOfTheKernel) {
  for_every_example([](const Example& e) {
    for (DType real : kBothReals) expect_every_pair(e, real);
  });
}

TEST(AllOpsInPlace, LargerKernelCallsToo) {
  for_every_example(
      [](const Example& e) { expect_every_pair(enlarged(e, test::seeds(200000), test::seeds(2000)), DType::f32); });
}

// Uses one tensor for every operand: x += x.
TEST(AllOpsInPlace, OneTensorAsEveryOperand) {
  for_every_example([](const Example& e) {
    for (const InplacePair& pair : e.op->inplace) {
      std::vector<Tensor> operands = make_operands(e, DType::f32, 4);
      for (const Tensor& t : operands)
        if (t.type() != operands[0].type()) return;
      if (pair.input >= static_cast<int>(operands.size())) return;
      const Tensor one = operands[pair.input];
      operands.assign(operands.size(), one);
      const std::vector<Tensor> fresh = run(e, operands);
      if (!fits({0, 0}, operands, fresh) || fresh.size() != 1) return;
      apply_in_place(*e.op, operands, e.attrs(), {});
      expect_equal_bits({operands[0]}, fresh, "over itself");
    }
  });
}

TEST(AllOpsInPlace, TheEngineWritesTargetsOfEveryLayout) {
  for_every_example([](const Example& e) {
    if (e.op->inplace.empty()) return;
    for (DType real : kBothReals)
      for (int layout = -1; layout < static_cast<int>(std::size(kLayouts)); ++layout) {
        std::vector<Tensor> operands = make_operands(e, real, 4);
        const std::vector<Tensor> fresh = run(e, operands);
        std::vector<int> over(fresh.size(), -1);
        for (const InplacePair& p : e.op->inplace) {
          int& target = over[p.output];
          if (target < 0) target = p.input;
        }
        for (std::size_t k = 0; k < fresh.size(); ++k)
          if (over[k] < 0 || !fits({static_cast<std::int8_t>(k), static_cast<std::int8_t>(over[k])}, operands, fresh)) return;
        if (layout >= 0)
          for (Tensor& t : operands) t = laid_out(t, kLayouts[layout]);
        apply_in_place(*e.op, operands, e.attrs(), {});
        std::vector<Tensor> written;
        for (int i : over) written.push_back(operands[i]);
        expect_equal_bits(written, fresh, layout < 0 ? "dense" : kLayouts[layout].name);
      }
  });
}

}  // namespace
}  // namespace tapedeck::testing
