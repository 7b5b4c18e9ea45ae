// The updates of many tensors by one launch, in the emulator, against the single updates, which know no chunks and no groups.
#include <tapedeck/kernels/attrs/optimizer.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/optimizer/grouped.inl>

namespace tapedeck::kernels::emulated {
void sgd(const KernelCall& call);
void sgd_momentum(const KernelCall& call);
void adamw(const KernelCall& call);
void adam(const KernelCall& call);
}  // namespace tapedeck::kernels::emulated

namespace tapedeck::kernels::cpu {
void ema(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

struct Update {
  Kernel group, single;
  int tensors;  // the parameter, the gradient and the states
  int outputs;
  bool counted, rated;
  const void* attrs;
};

class CudaGroupedUpdates : public RandomCalls {
 protected:
  Operands update_of(const Update& u, DType t, std::int64_t n, bool in_place, int switched) {
    Operands call;
    for (int k = 0; k < u.tensors; ++k) call.inputs.push_back(draws_.dense(t, {n}, {0, 2, false}));
    if (u.counted) {
      call.inputs.push_back(draws_.dense(DType::i64, {}));
      *call.inputs.back().view.as<std::int64_t>() = 1 + draws_.below(9);
    }
    if (u.rated) call.inputs.push_back(draws_.dense(DType::f32, {}, {0.01, 0.1, false}));
    if (switched >= 0) {
      call.inputs.push_back(draws_.dense(DType::boolean, {}));
      *call.inputs.back().view.as<std::uint8_t>() = switched == 1 ? 1 : draws_.chance(0.5);
    }
    for (int k = 0; k < u.outputs; ++k) {
      call.outputs.push_back(draws_.dense(t, {n}));
      if (in_place) call.in_place.push_back({k, k == 0 ? 0 : k + 1});
    }
    return call;
  }

  // All operands and results of the calls, one call after the other.
  static void run_group(const Update& u, std::vector<Operands>& calls) {
    std::vector<View> inputs, outputs;
    for (Operands& call : calls) {
      std::vector<View> views;
      call.call_views(&views);
      const auto split = views.begin() + static_cast<std::ptrdiff_t>(call.inputs.size());
      inputs.insert(inputs.end(), views.begin(), split);
      outputs.insert(outputs.end(), split, views.end());
    }
    KernelFault fault;
    KernelCall call;
    call.inputs = inputs.data(), call.n_inputs = static_cast<int>(inputs.size());
    call.outputs = outputs.data(), call.n_outputs = static_cast<int>(outputs.size());
    call.attrs = u.attrs;
    call.fault = &fault;
    u.group(call);
    EXPECT_EQ(fault.what.load(), nullptr);
  }

  void try_sizes(const Update& u, DType t, const Sizes& sizes, int switched) {
    std::vector<Operands> grouped;
    for (const std::int64_t n : sizes) grouped.push_back(update_of(u, t, n, draws_.chance(0.5), switched));
    std::vector<Operands> single = grouped;
    run_group(u, grouped);
    const bool by_cpu = !u.rated;
    for (std::size_t i = 0; i < single.size(); ++i) {
      if (by_cpu)
        run_on_cpu({"ema", nullptr, u.single}, single[i], u.attrs);
      else
        run(u.single, nullptr, single[i], u.attrs, 0);
      for (std::size_t k = 0; k < single[i].outputs.size(); ++k)
        EXPECT_TRUE(equal_results(grouped[i].outputs[k], single[i].outputs[k]))
            << dtype_name(t) << ": output " << k << " of tensor " << i << ", of " << sizes[i] << " elements";
    }
  }

  void try_update(const Update& u) {
    Sizes many;  // more than one launch takes
    for (int k = 0; k < 150; ++k) many.push_back(draws_.below(40));
    for (const DType t : kFloats) {
      try_sizes(u, t, {0, 0}, -1);
      try_sizes(u, t, {1023, 0, 1025, 4, 5, 1, 3001}, -1);
      if (u.rated) try_sizes(u, t, {1025, 7}, 1);
    }
    try_sizes(u, DType::f32, many, u.rated ? 0 : -1);
    try_sizes(u, DType::bf16, {1}, -1);
    try_sizes(u, DType::f32, {17, 200'000, 3}, -1);
  }
};

TEST_F(CudaGroupedUpdates, EqualSingleUpdates) {
  SgdAttrs sgd;
  sgd.weight_decay = 0.1;
  try_update({&kernels::emulated::sgd_group, &kernels::emulated::sgd, 2, 1, false, true, &sgd});
  MomentumAttrs momentum;
  momentum.weight_decay = 0.1, momentum.dampening = 0.3;
  for (const bool counted : {false, true}) {
    momentum.nesterov = counted;
    try_update({&kernels::emulated::sgd_momentum_group, &kernels::emulated::sgd_momentum, 3, 2, counted, true, &momentum});
  }
  AdamAttrs adam;
  adam.weight_decay = 0.1;
  try_update({&kernels::emulated::adamw_group, &kernels::emulated::adamw, 4, 3, true, true, &adam});
  try_update({&kernels::emulated::adam_group, &kernels::emulated::adam, 4, 3, true, true, &adam});
}

TEST_F(CudaGroupedUpdates, RunningStatisticsEqualCpu) {
  EmaAttrs attrs;
  attrs.momentum = 0.3;
  try_update({&kernels::emulated::ema_group, &kernels::cpu::ema, 2, 1, false, false, &attrs});
}

// The chunks of a block grow once the blocks would be too many. That takes a tensor larger than the emulator likes, so the
// sizes stand alone.
TEST_F(CudaGroupedUpdates, ChunksGrowWithTheTensors) {
  View small, large;
  small.rank = large.rank = 1;
  small.sizes[0] = 1, large.sizes[0] = std::int64_t{1} << 33;
  const View views[] = {small, large};
  using kernels::emulated::chunk_of;
  EXPECT_EQ(chunk_of(views, 1, 1), 1024);
  const std::int64_t chunk = chunk_of(views, 2, 1);
  EXPECT_EQ(chunk % 1024, 0);
  EXPECT_LE(1 + (large.sizes[0] + chunk - 1) / chunk, kernels::emulated::kMaxBlocks);
  EXPECT_GT(1 + (large.sizes[0] + chunk / 2 - 1) / (chunk / 2), kernels::emulated::kMaxBlocks);
}

}  // namespace
}  // namespace tapedeck::testing::cuda
