// sum, mean, max, min and prod of the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/cuda/reduction/reduce.inl>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void prod(const KernelCall& call);
}

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kReduceSeed = 41;

Sizes reduced_sizes(const View& x, const Ints& axes) {
  Sizes sizes;
  for (int d = 0; d < x.rank; ++d)
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) sizes.push_back(x.sizes[d]);
  return sizes;
}

void check_sums(const Array& x, const Ints& axes) {
  const DType dtype = x.view.dtype;
  SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " rank " << x.view.rank);
  const ReduceAttrs attrs{axes, false};
  const auto out = [&] { return make_array(dtype, reduced_sizes(x.view, axes)); };
  const double length = static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(out().numel(), 1));
  compare(emulated::sum, emulated::sum_workspace, cpu::sum, 0, {{x}, {out()}, &attrs}, {2 * length});
  if (is_floating(dtype)) compare(emulated::mean, emulated::mean_workspace, cpu::mean, 0, {{x}, {out()}, &attrs}, {2});
}

const DType kNative[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

TEST(CudaReduce, SumsRowsAndColumnsOfEveryType) {
  SCOPED_TRACE(::testing::Message() << "seed " << kReduceSeed);
  Random random(kReduceSeed);
  for (const DType dtype : kNative)
    for (const std::int64_t n : {0, 1, 31, 33, 1000, 1025}) {
      const double high = dtype == DType::u8 ? 255 : 2;
      check_sums(random_numbers(random, dtype, {3, n}, dtype == DType::u8 ? 0 : -2, high), {1});
      check_sums(random_numbers(random, dtype, {n, 37}, dtype == DType::u8 ? 0 : -2, high), {0});
    }
}

// One result of many elements is folded in pieces, and so are few columns.
TEST(CudaReduce, SumsLongSequencesInPieces) {
  Random random(kReduceSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64}) {
    check_sums(random_numbers(random, dtype, {40000}), {0});
    check_sums(random_numbers(random, dtype, {3000, 20}), {0});
    check_sums(random_numbers(random, dtype, {7, 5, 900}), {0, 2});
  }
}

TEST(CudaReduce, SumsAnyAxesOfAnyStrides) {
  Random random(kReduceSeed);
  for (int round = 0; round < 60; ++round) {
    const Array dense = random_numbers(random, kNative[round % 5], random_sizes(random, 5, 6));
    Ints axes;
    for (int d = 0; d < dense.view.rank; ++d)
      if (random() % 2) axes.push_back(d);
    if (axes.size == 0 && dense.view.rank > 0) axes.push_back(0);
    check_sums(dense, axes);
    check_sums(scrambled(random, dense), axes);
  }
  check_sums(broadcast(random_numbers(random, DType::f32, {1, 7}), {40, 7}), {0});
  check_sums(broadcast(random_numbers(random, DType::f32, {7, 1}), {7, 40}), {1});
}

// Packs of 16 bytes along and across, with a rest behind the loads that fly together.
TEST(CudaReduce, SumsByPacks) {
  Random random(kReduceSeed);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    check_sums(random_numbers(random, dtype, {5, 2056}), {1});
    check_sums(random_numbers(random, dtype, {9, 136}), {1});
    check_sums(random_numbers(random, dtype, {1500, 264}), {0});
    check_sums(random_numbers(random, dtype, {3, 70, 5, 40}), {1});
    check_sums(random_numbers(random, dtype, {3, 70, 5, 40}), {0, 2});
    check_sums(random_numbers(random, dtype, {6, 3, 136}), {0, 2});
  }
}

// The order of additions depends on the shape alone where elements are read one at a time and sequences are not cut: a
// transposed copy and a broken-up axis give the same bits.
TEST(CudaReduce, HasTheSameBitsForEveryLayoutWithoutPacks) {
  Random random(kReduceSeed);
  for (const Sizes& sizes : {Sizes{41, 333}, Sizes{50, 9, 301}, Sizes{33, 21}}) {
    const Array x = random_numbers(random, DType::f32, sizes);
    const Ints axes = {x.view.rank - 1};
    const ReduceAttrs attrs{axes, false};
    const Array a = make_array(DType::f32, reduced_sizes(x.view, axes)),
                b = make_array(DType::f32, reduced_sizes(x.view, axes));
    std::vector<int> order(sizes.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(order.size() - 1 - d);
    const Array turned = permuted(dense_copy(permuted(x, order)), order);
    run_emulated(emulated::sum, emulated::sum_workspace, {{x}, {a}, &attrs});
    run_emulated(emulated::sum, emulated::sum_workspace, {{turned}, {b}, &attrs});
    EXPECT_TRUE(same_bits(a, b));
  }
}

TEST(CudaReduce, FindsExtremesAndProducts) {
  Random random(kReduceSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8})
    for (const Sizes& sizes : {Sizes{5, 33}, Sizes{40, 35}, Sizes{3, 1}})
      for (const int axis : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " axis " << axis);
        const Array x = random_numbers(random, dtype, sizes, dtype == DType::u8 ? 0 : -100, dtype == DType::u8 ? 255 : 100);
        const Array near_one = random_numbers(random, dtype, sizes, 0.99, is_floating(dtype) ? 1.01 : 3.99);
        const ReduceAttrs attrs{{axis}, false};
        const auto out = [&] { return make_array(dtype, {sizes[1 - axis]}); };
        compare(emulated::max, emulated::max_workspace, cpu::max, 0, {{x}, {out()}, &attrs}, {0, 0, 0});
        compare(emulated::min, emulated::min_workspace, cpu::min, 0, {{x}, {out()}, &attrs}, {0, 0, 0});
        compare(emulated::prod, emulated::prod_workspace, cpu::prod, 0, {{near_one}, {out()}, &attrs});
      }
  const ReduceAttrs attrs{{0}, false};
  const Array x = random_numbers(random, DType::f32, {2500}, 0.99, 1.01);
  compare(emulated::prod, emulated::prod_workspace, cpu::prod, 0, {{x}, {make_array(DType::f32, {})}, &attrs});
  compare(emulated::max, emulated::max_workspace, cpu::max, 0, {{x}, {make_array(DType::f32, {})}, &attrs}, {0, 0, 0});
}

TEST(CudaReduce, KeepsNanAndReportsExtremesOfNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ReduceAttrs attrs{{1}, false};
  const Array x = array_of(DType::f32, {3, 3}, {1, nan, 2, 5, -7, 6, nan, nan, nan}), out = make_array(DType::f32, {3});
  compare(emulated::max, emulated::max_workspace, cpu::max, 0, {{x}, {out}, &attrs});
  EXPECT_TRUE(std::isnan(out.get(0)));
  EXPECT_EQ(out.get(1), 6);
  const Array none = make_array(DType::f32, {3, 0});
  compare(emulated::min, emulated::min_workspace, cpu::min, 0, {{none}, {out}, &attrs});
  compare(emulated::prod, emulated::prod_workspace, cpu::prod, 0, {{none}, {out}, &attrs});
}

}  // namespace
}  // namespace tapedeck::testing
