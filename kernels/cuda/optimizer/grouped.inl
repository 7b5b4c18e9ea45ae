// The updates of many tensors by one launch. The arithmetic is that of a single update (update_rules.h), so the bits are equal.
//
// A call of a group has the operands of single calls of one op, one call after the other, and their results likewise. All
// views are dense, the single calls have the same number of operands, of the same dtypes, and none touches bytes that another
// writes. A block computes one chunk of one tensor, and finds the tensor by its number in the table of first blocks.
#pragma once

#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/cuda/optimizer/update_rules.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// A member is one tensor of the group: its memory, and the numbers of its step.
template <class Update>
struct GroupMember {
  std::int64_t n, packs;
  const void* in[Update::kIn];
  void* out[Update::kOut];
  const void* rate;
  const std::int64_t* count;
  const std::uint8_t* condition;
};

// A kernel takes 4096 bytes of arguments.
template <class Update>
inline constexpr int kMostMembers = (4096 - 128) / (sizeof(GroupMember<Update>) + sizeof(std::int32_t));

template <class Update>
struct Group {
  GroupMember<Update> members[kMostMembers<Update>];
  std::int32_t first_block[kMostMembers<Update>];  // ascending
  std::int32_t count;
  DType dtype, rate_dtype;
  std::int64_t chunk;  // elements of a block
  Update update;
};

// The last member whose first block is not behind this one.
template <class Update>
TAPEDECK_DEVICE int member_of_block(const Group<Update>& g, std::int32_t block) {
  int low = 0, high = g.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (g.first_block[middle] <= block)
      low = middle;
    else
      high = middle;
  }
  return low;
}

template <class Update>
TAPEDECK_DEVICE Step<Update> step_of_member(const Group<Update>& g, int member) {
  const GroupMember<Update>& m = g.members[member];
  Step<Update> s{m.n, m.packs, {}, {}, g.dtype, m.rate, g.rate_dtype, m.count, m.condition, g.update};
  for (int k = 0; k < Update::kIn; ++k) s.in[k] = m.in[k];
  for (int k = 0; k < Update::kOut; ++k) s.out[k] = m.out[k];
  return s;
}

// A chunk holds whole packs, so the elements behind the last pack lie in the last chunk, unless the tensor has no packs.
template <class T, class Update>
TAPEDECK_KERNEL void group_kernel(const Group<Update> g) {
  using V = Value<T>;
  constexpr int kCount = 16 / sizeof(V);
  const std::int32_t block = static_cast<std::int32_t>(blockIdx.x);
  const int member = member_of_block(g, block);
  const Step<Update> s = step_of_member(g, member);
  const std::int64_t first = (block - g.first_block[member]) * g.chunk;
  const std::int64_t end = first + g.chunk < s.n ? first + g.chunk : s.n;
  if (s.condition && *s.condition == 0) return keep<T>(s, {first + threadIdx.x, end, blockDim.x});
  TAPEDECK_SHARED typename Update::template Numbers<V> numbers;
  if (threadIdx.x == 0)
    numbers = s.update.template numbers<V>(s.rate ? scalar_at<V>(s.rate, s.rate_dtype) : V(0),
                                           s.count ? static_cast<double>(*s.count) : 0.0);
  sync_block();
  const std::int64_t last_pack = end / kCount < s.packs ? end / kCount : s.packs;
  for (std::int64_t i = first / kCount + threadIdx.x; i < last_pack; i += blockDim.x)
    update_pack<kCount, T>(s, numbers, i * kCount);
  const std::int64_t single = last_pack * kCount > first ? last_pack * kCount : first;
  for (std::int64_t i = single + threadIdx.x; i < end; i += blockDim.x) update_one<T>(s, numbers, i);
}

// Chunks are as small as the most blocks allow, for many small tensors must fill the device too.
inline std::int64_t chunk_of(const View* weights, int count, int step) {
  constexpr std::int64_t kSmallest = 4 * kThreads;
  std::int64_t chunk = kSmallest;
  for (;; chunk *= 2) {
    std::int64_t blocks = 0;
    for (int k = 0; k < count; ++k) blocks += (weights[k * step].numel() + chunk - 1) / chunk;
    if (blocks <= kMaxBlocks) return chunk;
  }
}

template <class Update>
void add_member(Group<Update>& g, const Step<Update>& s, std::int64_t* blocks) {
  GroupMember<Update>& m = g.members[g.count];
  m.n = s.n, m.packs = s.packs, m.rate = s.rate, m.count = s.count, m.condition = s.condition;
  for (int k = 0; k < Update::kIn; ++k) m.in[k] = s.in[k];
  for (int k = 0; k < Update::kOut; ++k) m.out[k] = s.out[k];
  g.dtype = s.dtype, g.rate_dtype = s.rate_dtype;
  g.first_block[g.count++] = static_cast<std::int32_t>(*blocks);
  *blocks += (s.n + g.chunk - 1) / g.chunk;
}

template <class Update>
void launch_group(const KernelCall& call, const Group<Update>& g, std::int64_t blocks) {
  for_reals(call, g.dtype,
            [&](auto t) { launch<Group<Update>>(call, &group_kernel<decltype(t), Update>, Launch{.blocks = blocks}, g); });
}

// Makes the steps of the group, with step(inputs, n_inputs, outputs), and launches as often as the arguments need.
template <class Update, class MakeStep>
void run_group(const KernelCall& call, const Update& update, const MakeStep& step) {
  static_assert(sizeof(Group<Update>) <= 4096);
  const int calls = call.n_outputs / Update::kOut;
  if (calls == 0) return;
  const int n_inputs = call.n_inputs / calls;
  Group<Update> g{};
  g.update = update;
  for (int first = 0; first < calls; first += kMostMembers<Update>) {
    const int end = calls - first < kMostMembers<Update> ? calls : first + kMostMembers<Update>;
    g.count = 0;
    g.chunk = chunk_of(call.inputs + first * n_inputs, end - first, n_inputs);
    std::int64_t blocks = 0;
    for (int k = first; k < end; ++k) {
      const Step<Update> s = step(call.inputs + k * n_inputs, n_inputs, call.outputs + k * Update::kOut);
      if (s.n > 0) add_member(g, s, &blocks);
    }
    if (blocks > 0) launch_group(call, g, blocks);
  }
}

template <class Update>
void run_updates(const KernelCall& call, const Update& update, bool counted) {
  run_group(call, update, [&](const View* inputs, int n_inputs, const View* outputs) {
    return step_of(inputs, n_inputs, outputs, update, counted);
  });
}

// ---- the ops ----

void sgd_group(const KernelCall& call) { run_updates(call, Sgd{call.attributes<SgdAttrs>().weight_decay}, false); }

void sgd_momentum_group(const KernelCall& call) {
  const auto& a = call.attributes<MomentumAttrs>();
  run_updates(call, SgdMomentum{a.momentum, a.weight_decay, a.dampening, a.nesterov}, call.inputs[3].dtype == DType::i64);
}

void adamw_group(const KernelCall& call) {
  const auto& a = call.attributes<AdamAttrs>();
  run_updates(call, Adam<true, false>{a.beta1, a.beta2, a.eps, a.weight_decay}, true);
}

void adam_group(const KernelCall& call) {
  const auto& a = call.attributes<AdamAttrs>();
  run_updates(call, Adam<false, false>{a.beta1, a.beta2, a.eps, a.weight_decay}, true);
}

// The running statistics of a batch norm. The arithmetic is that of ema (elementwise/arithmetic.inl).
struct RunningMean {
  static constexpr int kIn = 2, kOut = 1;
  double momentum;

  template <class V>
  struct Numbers {
    V momentum;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V, double) const {
    return {static_cast<V>(momentum)};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    out[0] = in[0] + n.momentum * (in[1] - in[0]);
  }
};

void ema_group(const KernelCall& call) {
  const RunningMean update{call.attributes<EmaAttrs>().momentum};
  run_group(call, update, [&](const View* inputs, int, const View* outputs) { return memory_of(inputs, outputs, update); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
