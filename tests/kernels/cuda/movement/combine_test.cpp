// Writes at indices in the emulator. The oracles are the CPU kernels, which add in the same order; every byte must be theirs.
// Half-precision results are those of the CPU kernel on f32, rounded.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/movement/combine.inl>

namespace tapedeck::kernels::cpu {
void embedding_grad(const KernelCall& call);
void index_add(const KernelCall& call);
void scatter(const KernelCall& call);
void scatter_add(const KernelCall& call);
void scatter_reduce(const KernelCall& call);
void scatter_nd(const KernelCall& call);
void bincount(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

constexpr std::int64_t kPlenty = 1 << 20;  // bytes of workspace: more than any case needs on the CPU

using Room = std::int64_t (*)(const KernelCall& call);

std::int64_t room_of(Room rule, const std::vector<Array>& inputs, const Array& result, const void* attrs) {
  std::vector<View> views;
  for (const Array& a : inputs) views.push_back(a.view);
  KernelCall call;
  call.inputs = views.data();
  call.outputs = &result.view;
  call.attrs = attrs;
  return rule(call);
}

Array as_f32(const Array& half) {
  const Array a = make_array(DType::f32, Sizes(half.view.sizes, half.view.sizes + half.view.rank));
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const auto bits = half.at<std::uint16_t>(i);
    a.at<float>(i) = half.view.dtype == DType::f16 ? kernels::to_f32(kernels::F16{bits}) : kernels::to_f32(kernels::Bf16{bits});
  }
  return a;
}

Array as_half(DType dtype, const Array& single) {
  const Array a = make_array(dtype, Sizes(single.view.sizes, single.view.sizes + single.view.rank));
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const float x = single.at<float>(i);
    a.at<std::uint16_t>(i) = dtype == DType::f16 ? kernels::to_f16(x).bits : kernels::to_bf16(x).bits;
  }
  return a;
}

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Random numbers; integers are small, and halves are exact halves.
Array numbers(Random& random, DType dtype, const Sizes& sizes) {
  if (is_half(dtype)) return as_half(dtype, random_array(random, DType::f32, sizes));
  return random_array(random, dtype, sizes, -3, 3);
}

void expect_same_halves(Kernel emulated, Kernel on_cpu, const std::vector<Array>& inputs, const Array& result,
                        const void* attrs, std::int64_t room) {
  std::vector<Array> wide;
  for (const Array& a : inputs) wide.push_back(is_half(a.view.dtype) ? as_f32(a) : a);
  const Array expected = make_array(DType::f32, Sizes(result.view.sizes, result.view.sizes + result.view.rank));
  run(on_cpu, wide, {expected}, attrs, kPlenty);
  run(emulated, inputs, {result}, attrs, room);
  EXPECT_TRUE(same_bits(result, as_half(result.view.dtype, expected))) << describe(inputs);
}

struct Op {
  Kernel emulated;
  Room room;
  Kernel on_cpu;
};

#define TAPEDECK_OP(name) \
  Op { &device::name, &device::name##_workspace, &cpu::name }

void check(const Op& op, const std::vector<Array>& inputs, const Array& result, const void* attrs, bool same_value = true) {
  const std::int64_t room = room_of(op.room, inputs, result, attrs);
  if (is_half(result.view.dtype)) return expect_same_halves(op.emulated, op.on_cpu, inputs, result, attrs, room);
  expect_same(op.emulated, op.on_cpu, inputs, {result}, attrs, {room, kPlenty}, same_value);
  if (inputs[0].view.dtype == result.view.dtype)
    expect_same_in_place(op.emulated, op.on_cpu, inputs, 0, attrs, {room, kPlenty});
}

const std::vector<DType> kCombineNumbers = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
const std::vector<DType> kFloats = {DType::f32, DType::f64, DType::f16, DType::bf16};

TEST(CudaMovement, AddsUpTheRowsOfEqualIds) {
  Random random(1);
  for (const DType dtype : kFloats)
    for (const DType ids : {DType::i32, DType::i64})
      for (const auto& [rows, m, width] :
           {std::tuple<std::int64_t, std::int64_t, std::int64_t>{6, 40, 5}, {4, 100, 20}, {1, 33, 3}, {50, 7, 17}, {2, 0, 3}}) {
        const RowsAttrs attrs{rows};
        check(TAPEDECK_OP(embedding_grad), {random_indices(random, ids, {m}, -rows, rows), numbers(random, dtype, {m, width})},
              make_array(dtype, {rows, width}), &attrs);
      }
}

TEST(CudaMovement, AddsUpManyIdsInOrder) {
  Random random(2);
  const RowsAttrs attrs{300};
  check(TAPEDECK_OP(embedding_grad),
        {random_indices(random, DType::i64, {5000}, 0, 300), numbers(random, DType::f32, {5000, 3})},
        make_array(DType::f32, {300, 3}), &attrs);
  const RowsAttrs one{1};
  check(TAPEDECK_OP(embedding_grad), {make_array(DType::i64, {4500}), numbers(random, DType::f32, {4500, 16})},
        make_array(DType::f32, {1, 16}), &one);
}

TEST(CudaMovement, AddsSlices) {
  Random random(3);
  for (const DType dtype : kCombineNumbers)
    for (int axis = 0; axis < 3; ++axis)
      for (const std::int64_t m : {0, 1, 40}) {
        const Sizes sizes = {3, 4, 20};
        Sizes added = sizes;
        added[static_cast<std::size_t>(axis)] = m;
        const std::int64_t n = sizes[static_cast<std::size_t>(axis)];
        const AxisAttrs attrs{axis};
        check(TAPEDECK_OP(index_add),
              {numbers(random, dtype, sizes), random_indices(random, DType::i64, {m}, -n, n), numbers(random, dtype, added)},
              make_array(dtype, sizes), &attrs);
      }
}

struct Lines {
  int axis;
  Sizes sizes;
};

const std::vector<Lines> kCombineLines = {{0, {9, 4, 4}}, {1, {2, 19, 3}}, {2, {3, 5, 1}}, {1, {3, 0, 4}}, {2, {3, 5, 12}}};

TEST(CudaMovement, Scatters) {
  Random random(4);
  for (const DType dtype : kAllTypes)
    for (const DType ids : {DType::i32, DType::i64})
      for (const auto& [axis, sizes] : kCombineLines) {
        const Array x = random_bits(random, dtype, {3, 5, 4});
        const std::int64_t n = x.view.sizes[axis];
        const AxisAttrs attrs{axis};
        const std::vector<Array> inputs = {x, random_indices(random, ids, sizes, -n, n), random_bits(random, dtype, sizes)};
        const Array y = make_array(dtype, {3, 5, 4});
        const std::int64_t room = room_of(&device::scatter_workspace, inputs, y, &attrs);
        expect_same(&device::scatter, &cpu::scatter, inputs, {y}, &attrs, {room, 0});
        expect_same_in_place(&device::scatter, &cpu::scatter, inputs, 0, &attrs, {room, 0});
      }
}

TEST(CudaMovement, ScattersSumsAndOtherReductions) {
  Random random(5);
  for (const DType dtype : kCombineNumbers)
    for (const auto& [axis, sizes] : kCombineLines) {
      const Array x = numbers(random, dtype, {3, 5, 4});
      const std::int64_t n = x.view.sizes[axis];
      const std::vector<Array> inputs = {x, random_indices(random, DType::i64, sizes, -n, n), numbers(random, dtype, sizes)};
      const AxisAttrs attrs{axis};
      check(TAPEDECK_OP(scatter_add), inputs, make_array(dtype, {3, 5, 4}), &attrs);
      for (const char* reduction : {"mul", "max", "min"}) {
        const ScatterReduceAttrs reduce{axis, reduction};
        check(TAPEDECK_OP(scatter_reduce), inputs, make_array(dtype, {3, 5, 4}), &reduce);
      }
    }
}

TEST(CudaMovement, ScattersTuples) {
  Random random(6);
  for (const DType dtype : kCombineNumbers)
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      const auto tuples = [&](const Sizes& x, const Sizes& indices, const Sizes& src, std::int64_t batch) {
        const ScatterNdAttrs attrs{reduction, batch};
        check(TAPEDECK_OP(scatter_nd),
              {numbers(random, dtype, x), random_indices(random, DType::i32, indices, -3, 3), numbers(random, dtype, src)},
              make_array(dtype, x), &attrs);
      };
      tuples({3, 4, 5}, {26, 2}, {26, 5}, 0);
      tuples({3, 4}, {2, 3, 2}, {2, 3}, 0);
      tuples({2, 3, 4}, {2, 9, 1}, {2, 9, 4}, 1);
      tuples({3, 4}, {2, 0}, {2, 3, 4}, 0);
      tuples({3, 4}, {0, 1}, {0, 4}, 0);
    }
}

TEST(CudaMovement, ReportsPlacesOutOfRangeAndSkipsThem) {
  Random random(7);
  const Array x = numbers(random, DType::f32, {4, 2}), src = numbers(random, DType::f32, {3, 2});
  const AxisAttrs axis{0};
  const RowsAttrs rows{4};
  check(TAPEDECK_OP(embedding_grad), {array_of(DType::i64, {3}, {1, 4, 1}), src}, make_array(DType::f32, {4, 2}), &rows);
  check(TAPEDECK_OP(index_add), {x, array_of(DType::i32, {3}, {-5, 0, 0}), src}, make_array(DType::f32, {4, 2}), &axis);
  check(TAPEDECK_OP(scatter_add), {x, array_of(DType::i64, {3, 2}, {0, 1, 2, 9, 0, 1}), src}, make_array(DType::f32, {4, 2}),
        &axis);
  const ScatterNdAttrs attrs{"add", 0};
  check(TAPEDECK_OP(scatter_nd), {x, array_of(DType::i64, {3, 1}, {3, -5, 3}), src}, make_array(DType::f32, {4, 2}), &attrs);
}

TEST(CudaMovement, Counts) {
  Random random(8);
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    for (const std::int64_t m : {0, 9, 700}) {
      const BinsAttrs attrs{6};
      expect_same(&device::bincount, &cpu::bincount, {random_indices(random, dtype, {m}, 0, 6)}, {make_array(DType::i64, {6})},
                  &attrs);
    }
  const BinsAttrs attrs{3};
  expect_same(&device::bincount, &cpu::bincount, {array_of(DType::i64, {4}, {1, 2, 3, 1})}, {make_array(DType::i64, {3})},
              &attrs);
}

}  // namespace
}  // namespace tapedeck::testing
