// sort, argsort, topk and searchsorted in the emulator. The oracles are the CPU kernels; every byte must be theirs.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/cuda/movement/sort.inl>

#include <limits>

namespace tapedeck::kernels::cpu {
void sort(const KernelCall& call);
void argsort(const KernelCall& call);
void topk(const KernelCall& call);
void searchsorted(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

const std::vector<DType> kSortable = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean};

// Numbers with many equal ones; floats have NaN of both signs, infinities and both zeros among them.
Array unsorted(Random& random, DType dtype, const Sizes& sizes) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double special[] = {nan, -nan, inf, -inf, 0.0, -0.0};
  Array a = make_array(dtype, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const bool negative = dtype != DType::u8 && dtype != DType::boolean;
    const double plain = static_cast<double>(random() % (dtype == DType::boolean ? 2 : 40)) - (negative ? 20 : 0);
    a.set(i, is_floating(dtype) && random() % 4 == 0 ? special[random() % 6] : plain);
  }
  return a;
}

Sizes with_axis(Sizes sizes, int axis, std::int64_t n) {
  sizes[static_cast<std::size_t>(axis)] = n;
  return sizes;
}

std::int64_t workspace_of(std::int64_t (*rule)(const KernelCall& call), const Array& x, const void* attrs) {
  KernelCall call;
  call.inputs = &x.view;
  call.attrs = attrs;
  return rule(call);
}

void check_sort(const Array& x, int axis, bool descending) {
  const SortAttrs attrs{axis, descending};
  const Sizes sizes(x.view.sizes, x.view.sizes + x.view.rank);
  const Array values = make_array(x.view.dtype, sizes), indices = make_array(DType::i64, sizes);
  const std::int64_t on_cpu = 32 * x.view.sizes[axis] * 16;
  expect_same(&device::sort, &cpu::sort, {x}, {values, indices}, &attrs,
              {workspace_of(&device::sort_workspace, x, &attrs), on_cpu});
  expect_same(&device::argsort, &cpu::argsort, {x}, {indices}, &attrs,
              {workspace_of(&device::argsort_workspace, x, &attrs), on_cpu});
}

void check_topk(const Array& x, const TopkAttrs& attrs) {
  const auto axis = static_cast<int>(attrs.axis);
  const Sizes sizes = with_axis(Sizes(x.view.sizes, x.view.sizes + x.view.rank), axis, attrs.k);
  expect_same(&device::topk, &cpu::topk, {x}, {make_array(x.view.dtype, sizes), make_array(DType::i64, sizes)}, &attrs,
              {workspace_of(&device::topk_workspace, x, &attrs), 32 * x.view.sizes[axis] * 16});
}

TEST(CudaSort, SortsAlongEveryAxis) {
  Random random(1);
  for (const DType dtype : kSortable)
    for (const bool descending : {false, true}) {
      check_sort(unsorted(random, dtype, {1}), 0, descending);
      check_sort(unsorted(random, dtype, {3, 0}), 1, descending);
      for (int axis = 0; axis < 3; ++axis) check_sort(unsorted(random, dtype, {2, 9, 3}), axis, descending);
      check_sort(unsorted(random, dtype, {2, 40}), 1, descending);
    }
}

TEST(CudaSort, SortsLongLines) {
  Random random(2);
  check_sort(unsorted(random, DType::f64, {2, 300}), 1, false);
  check_sort(unsorted(random, DType::f32, {4100}), 0, true);
}

TEST(CudaSort, TakesLinesInBatches) {
  Random random(3);
  const Array x = unsorted(random, DType::f32, {5, 7, 3});
  const SortAttrs attrs{1, false};
  const std::vector<Array> ours = {make_array(DType::f32, {5, 7, 3}), make_array(DType::i64, {5, 7, 3})};
  const std::vector<Array> theirs = {make_array(DType::f32, {5, 7, 3}), make_array(DType::i64, {5, 7, 3})};
  const Kernel in_batches = [](const KernelCall& call) {
    device::SortLines s = device::sort_lines_of(call);
    s.batch_items = 30;  // four lines of the fifteen
    device::run_sort(call, s, call.outputs[0].data, call.outputs[1].data);
  };
  run(in_batches, {x}, ours, &attrs, 4096);
  run(&cpu::sort, {x}, theirs, &attrs, 65536);
  EXPECT_TRUE(same_bits(ours[0], theirs[0]));
  EXPECT_TRUE(same_bits(ours[1], theirs[1]));
}

TEST(CudaSort, TakesTheLargestAndTheSmallest) {
  Random random(4);
  for (const DType dtype : kSortable)
    for (const bool largest : {false, true})
      for (const bool sorted : {false, true}) {
        for (const std::int64_t k : {0, 1, 5, 9}) check_topk(unsorted(random, dtype, {2, 9, 3}), {k, 1, largest, sorted});
        if (dtype == DType::f32) check_topk(unsorted(random, dtype, {2, 300}), {20, 1, largest, sorted});
      }
  check_topk(unsorted(random, DType::u8, {4200}), {4150, 0, true, false});
}

TEST(CudaSort, FindsPlacesAmongSortedElements) {
  Random random(5);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8})
    for (const bool right : {false, true}) {
      const SearchAttrs attrs{right};
      const auto check = [&](const Sizes& rows, const Sizes& values) {
        const Array mixed = unsorted(random, dtype, rows), sorted = make_array(dtype, rows),
                    places = make_array(DType::i64, rows);
        const SortAttrs along{mixed.view.rank - 1, false};
        run(&cpu::sort, {mixed}, {sorted, places}, &along, 65536);
        expect_same(&device::searchsorted, &cpu::searchsorted, {sorted, unsorted(random, dtype, values)},
                    {make_array(DType::i64, values)}, &attrs);
      };
      check({33}, {3, 40});
      check({2, 6}, {2, 40});
      check({0}, {3});
      check({1}, {});
      check({5}, {0});
    }
}

}  // namespace
}  // namespace tapedeck::testing
