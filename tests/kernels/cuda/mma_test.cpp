// The tiles of the tensor cores and the asynchronous copies, in the emulator. The oracle is a plain product of matrices in f64.
#include <tapedeck/kernels/cuda/async_copies.h>
#include <tapedeck/kernels/cuda/mma.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace tapedeck::kernels::emulated {
namespace {

// A matrix of halves: small multiples of 1/8, which f16 and bf16 hold exactly.
struct HalvesMatrix {
  int rows, columns;
  std::vector<double> numbers;

  HalvesMatrix(int r, int c, unsigned seed) : rows(r), columns(c) {
    std::mt19937 random(seed);
    for (int i = 0; i < r * c; ++i) numbers.push_back((static_cast<int>(random() % 33) - 16) / 8.0);
  }
  double at(int row, int column) const { return numbers[static_cast<std::size_t>(row * columns + column)]; }
  // The bits, in rows that lie `pitch` halves apart. The gaps are NaN.
  template <class Half>
  std::vector<std::uint16_t> bits(int pitch) const {
    std::vector<std::uint16_t> all(static_cast<std::size_t>(rows * pitch), 0xffff);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        all[static_cast<std::size_t>(r * pitch + c)] = narrow(static_cast<float>(at(r, c)), Half{}).bits;
    return all;
  }
};

struct TileProduct {
  const std::uint16_t *left, *right;  // in rows kTestPitch apart
  float* sums;                        // 16 x 16; they are added to
};

constexpr int kTestPitch = 24;

// Every lane writes its sums, at the places that mma.h names.
void add_sums(const TileProduct& p, int column, const SumTile& tile) {
  const int lane = static_cast<int>(lane_of_warp()), g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) p.sums[(g + i / 2 * 8) * 16 + column + 2 * t + i % 2] += tile.at[i];
}

std::uint32_t two_halves(std::uint16_t first, std::uint16_t second) { return static_cast<std::uint32_t>(second) << 16 | first; }

// The tiles are filled word by word, as mma.h describes them.
template <class Half>
TAPEDECK_KERNEL void multiply_word_by_word(const TileProduct p) {
  const int lane = static_cast<int>(lane_of_warp()), g = lane / 4, t = lane % 4;
  const auto left = [&](int row, int column) {
    return two_halves(p.left[row * kTestPitch + column], p.left[row * kTestPitch + column + 1]);
  };
  const auto right = [&](int row, int column) {
    return two_halves(p.right[row * kTestPitch + column], p.right[(row + 1) * kTestPitch + column]);
  };
  for (int column = 0; column < 16; column += 8) {
    SumTile sums{};
    add_product<Half>(sums, {{left(g, 2 * t), left(g + 8, 2 * t), left(g, 2 * t + 8), left(g + 8, 2 * t + 8)}},
                      {{right(2 * t, column + g), right(2 * t + 8, column + g)}});
    add_sums(p, column, sums);
  }
}

// The right operand is read as it lies, or turned.
template <class Half, bool kTurned>
TAPEDECK_KERNEL void multiply_loaded(const TileProduct p) {
  const RightTiles right =
      kTurned ? right_tiles_turned(p.right + quarters_across(kTestPitch)) : right_tiles(p.right + quarters_down(kTestPitch));
  SumTile first{}, second{};
  const LeftTile left = left_tile(p.left + quarters_down(kTestPitch));
  add_product<Half>(first, left, right.first);
  add_product<Half>(second, left, right.second);
  add_sums(p, 0, first);
  add_sums(p, 8, second);
}

// (left right) right: the first product becomes the left operand of the second.
template <class Half>
TAPEDECK_KERNEL void multiply_twice(const TileProduct p) {
  const RightTiles right = right_tiles(p.right + quarters_down(kTestPitch));
  SumTile first{}, second{}, third{}, fourth{};
  const LeftTile left = left_tile(p.left + quarters_down(kTestPitch));
  add_product<Half>(first, left, right.first);
  add_product<Half>(second, left, right.second);
  const LeftTile product = left_tile_of<Half>(first, second);
  add_product<Half>(third, product, right.first);
  add_product<Half>(fourth, product, right.second);
  add_sums(p, 0, third);
  add_sums(p, 8, fourth);
}

std::vector<float> run_tiles(void (*kernel)(TileProduct), const std::vector<std::uint16_t>& left,
                             const std::vector<std::uint16_t>& right) {
  KernelFault fault;
  KernelCall call;
  call.fault = &fault;
  std::vector<float> sums(16 * 16, 0.0f);
  launch(call, kernel, Launch{.threads = kWarp}, TileProduct{left.data(), right.data(), sums.data()});
  return sums;
}

std::vector<double> plain_product(const HalvesMatrix& a, const std::vector<double>& b, bool turned) {
  std::vector<double> product(16 * 16, 0.0);
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 16; ++j)
      for (std::size_t k = 0; k < 16; ++k) product[i * 16 + j] += a.numbers[i * 16 + k] * b[turned ? j * 16 + k : k * 16 + j];
  return product;
}

void expect_equal_sums(const std::vector<float>& got, const std::vector<double>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(got[i], wanted[i]) << "row " << i / 16 << ", column " << i % 16;
}

template <class Half>
void check_tile_products() {
  const HalvesMatrix a(16, 16, 1), b(16, 16, 2);
  const std::vector<std::uint16_t> left = a.bits<Half>(kTestPitch), right = b.bits<Half>(kTestPitch);
  expect_equal_sums(run_tiles(&multiply_word_by_word<Half>, left, right), plain_product(a, b.numbers, false));
  expect_equal_sums(run_tiles(&multiply_loaded<Half, false>, left, right), plain_product(a, b.numbers, false));
  expect_equal_sums(run_tiles(&multiply_loaded<Half, true>, left, right), plain_product(a, b.numbers, true));
}

TEST(CudaTensorCores, MultiplyTiles) {
  check_tile_products<F16>();
  check_tile_products<Bf16>();
}

// The numbers are small and whole, so that their product is exact as halves too.
TEST(CudaTensorCores, AProductIsTheOperandOfTheNext) {
  HalvesMatrix a(16, 16, 3), b(16, 16, 4);
  for (double& x : a.numbers) x = x > 1 ? 1 : x < -1 ? -1 : 0;
  for (double& x : b.numbers) x = x > 1 ? 1 : x < -1 ? -1 : 0;
  HalvesMatrix product = a;
  product.numbers = plain_product(a, b.numbers, false);
  const std::vector<double> wanted = plain_product(product, b.numbers, false);
  const std::vector<std::uint16_t> left = a.bits<F16>(kTestPitch), right = b.bits<F16>(kTestPitch);
  expect_equal_sums(run_tiles(&multiply_twice<F16>, left, right), wanted);
  expect_equal_sums(run_tiles(&multiply_twice<Bf16>, a.bits<Bf16>(kTestPitch), b.bits<Bf16>(kTestPitch)), wanted);
}

// The sums that a tile holds already stay in the result.
TAPEDECK_KERNEL void add_to_old_sums(const TileProduct p) {
  const LeftTile left = left_tile(p.left + quarters_down(kTestPitch));
  const RightTiles right = right_tiles(p.right + quarters_down(kTestPitch));
  SumTile sums{{1, 2, 3, 4}};
  add_product<F16>(sums, left, right.first);
  add_product<F16>(sums, left, right.first);
  for (int i = 0; i < 4; ++i) sums.at[i] = sums.at[i] - static_cast<float>(i + 1);
  add_sums(p, 0, sums);
}

TEST(CudaTensorCores, AddToTheSums) {
  const HalvesMatrix a(16, 16, 5), b(16, 16, 6);
  const std::vector<float> got = run_tiles(&add_to_old_sums, a.bits<F16>(kTestPitch), b.bits<F16>(kTestPitch));
  const std::vector<double> once = plain_product(a, b.numbers, false);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(got[i], i % 16 < 8 ? 2 * once[i] : 0) << i;
}

struct CopyTest {
  const std::uint64_t* from;
  std::uint64_t *early, *late;
};

// Every thread copies 24 bytes and reads those of its neighbour.
TAPEDECK_KERNEL void copy_asynchronously(const CopyTest c) {
  auto* const packs = dynamic_shared<std::uint64_t>();
  std::uint64_t* const words = packs + 2 * blockDim.x;
  const unsigned i = threadIdx.x, other = (i + 1) % blockDim.x;
  AsyncCopies copies;
  copies.begin<16>(packs + 2 * i, c.from + 2 * i, true);
  copies.begin<8>(words + i, c.from + i, i % 2 == 0);
  c.early[i] = packs[2 * i];
  copies.wait();
  sync_block();
  c.late[3 * i] = packs[2 * other];
  c.late[3 * i + 1] = packs[2 * other + 1];
  c.late[3 * i + 2] = words[other];
}

TEST(CudaAsyncCopies, ArriveWithTheWait) {
  constexpr unsigned threads = 64;
  std::vector<std::uint64_t> from(2 * threads), early(threads), late(3 * threads);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = 1000 + i;
  KernelFault fault;
  KernelCall call;
  call.fault = &fault;
  launch(call, &copy_asynchronously, Launch{.threads = threads, .shared_bytes = threads * 24},
         CopyTest{from.data(), early.data(), late.data()});
  for (std::size_t i = 0; i < threads; ++i) {
    const std::size_t other = (i + 1) % threads;
    EXPECT_EQ(early[i], ~std::uint64_t{0}) << "a copy came before the wait";
    EXPECT_EQ(late[3 * i], from[2 * other]);
    EXPECT_EQ(late[3 * i + 1], from[2 * other + 1]);
    EXPECT_EQ(late[3 * i + 2], other % 2 == 0 ? from[other] : 0);
  }
}

}  // namespace
}  // namespace tapedeck::kernels::emulated
