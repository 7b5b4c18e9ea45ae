// Sorts pairs of keys and numbers. A short line is sorted by one block in shared memory, by a bitonic network. Long lines are
// sorted by radix, four bits at a time from the lowest, in three launches for each pass:
//
//   count   every tile of a line counts how often each digit occurs
//   add up  one block for each line turns the counts into first places: of digit 0 in tile 0, 1, ..., of digit 1 in tile 0, ...
//   place   every tile moves its pairs there, in order
//
// All integer sums, so the result is the one of any stable sort.
#include <tapedeck/kernels/cuda/movement/block_scan.h>
#include <tapedeck/kernels/cuda/movement/pairs.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

using movement::kDigits;
using movement::kPairTile;
using movement::Pairs;
using movement::PairSpace;

// ---- short lines ----

template <class Key>
struct ShortLines {
  Pairs<Key> pairs;
  std::int64_t lines;
  unsigned n, padded;  // n <= padded, which is a power of two
};

// After step (size, distance), all pairs that lie `distance` apart are in order: ascending and descending runs of `size` items
// take turns.
template <class Key>
TAPEDECK_DEVICE void bitonic_step(Key* keys, std::uint32_t* numbers, unsigned padded, unsigned size, unsigned distance) {
  for (unsigned t = threadIdx.x; t < padded / 2; t += blockDim.x) {
    const unsigned low = 2 * t - (t & (distance - 1)), high = low + distance;
    const bool ascending = (low & size) == 0;
    const bool greater = keys[low] != keys[high] ? keys[low] > keys[high] : numbers[low] > numbers[high];
    if (greater != ascending) continue;
    const Key key = keys[low];
    const std::uint32_t number = numbers[low];
    keys[low] = keys[high];
    numbers[low] = numbers[high];
    keys[high] = key;
    numbers[high] = number;
  }
}

template <class Key>
TAPEDECK_KERNEL void short_lines_kernel(const ShortLines<Key> s) {
  Key* const keys = dynamic_shared<Key>();
  auto* const numbers = reinterpret_cast<std::uint32_t*>(keys + s.padded);
  for (std::int64_t line = blockIdx.x; line < s.lines; line += gridDim.x) {
    const std::int64_t first = line * s.n;
    for (unsigned i = threadIdx.x; i < s.padded; i += blockDim.x) {
      keys[i] = i < s.n ? s.pairs.keys[first + i] : static_cast<Key>(~Key(0));
      numbers[i] = i < s.n ? s.pairs.numbers[first + i] : ~0u;
    }
    sync_block();
    for (unsigned size = 2; size <= s.padded; size *= 2)
      for (unsigned distance = size / 2; distance > 0; distance /= 2) {
        bitonic_step(keys, numbers, s.padded, size, distance);
        sync_block();
      }
    for (unsigned i = threadIdx.x; i < s.n; i += blockDim.x) {
      s.pairs.keys[first + i] = keys[i];
      s.pairs.numbers[first + i] = numbers[i];
    }
    sync_block();
  }
}

template <class Key>
void sort_short_lines(const KernelCall& call, const Pairs<Key>& pairs, std::int64_t lines, std::int64_t n) {
  ShortLines<Key> s{pairs, lines, static_cast<unsigned>(n), 2};
  while (s.padded < s.n) s.padded *= 2;
  Launch size{.blocks = lines < 16 * kMaxBlocks ? lines : 16 * kMaxBlocks, .threads = kWarp};
  while (size.threads < kThreads && size.threads < s.padded / 2) size.threads *= 2;
  size.shared_bytes = static_cast<std::size_t>(s.padded) * (sizeof(Key) + sizeof(std::uint32_t));
  launch(call, &short_lines_kernel<Key>, size, s);
}

// ---- long lines ----

template <class Key>
struct Pass {
  Pairs<Key> from, to;
  std::uint32_t* counts;  // [line][digit][tile]
  std::int64_t lines, n, tiles;
  int shift;

  TAPEDECK_DEVICE int digit(Key key) const { return static_cast<int>(key >> shift & (kDigits - 1)); }
};

template <class Key>
TAPEDECK_KERNEL void count_kernel(const Pass<Key> p) {
  TAPEDECK_SHARED unsigned found[kDigits];
  for (std::int64_t job = blockIdx.x; job < p.lines * p.tiles; job += gridDim.x) {
    const std::int64_t line = job / p.tiles, tile = job - line * p.tiles, begin = tile * kPairTile;
    const std::int64_t end = begin + kPairTile < p.n ? begin + kPairTile : p.n;
    if (threadIdx.x < kDigits) found[threadIdx.x] = 0;
    sync_block();
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
      atomic_add(&found[p.digit(p.from.keys[line * p.n + i])], 1u);
    sync_block();
    if (threadIdx.x < kDigits) p.counts[(line * kDigits + threadIdx.x) * p.tiles + tile] = found[threadIdx.x];
    sync_block();
  }
}

template <class Key>
TAPEDECK_KERNEL void add_up_kernel(const Pass<Key> p) {
  TAPEDECK_SHARED movement::WarpSums sums;
  for (std::int64_t line = blockIdx.x; line < p.lines; line += gridDim.x) {
    const std::int64_t total = kDigits * p.tiles;
    std::uint32_t* const counts = p.counts + line * total;
    unsigned before = 0;
    for (std::int64_t first = 0; first < total; first += blockDim.x) {
      const std::int64_t i = first + threadIdx.x;
      unsigned sum = 0;
      const unsigned place = movement::scan_block(i < total ? counts[i] : 0u, sums, sum);
      if (i < total) counts[i] = before + place;
      before += sum;
    }
  }
}

// Shared memory of a tile while its pairs are placed. places[d * kThreads + t] first counts the pairs of digit d of thread t,
// and then numbers them among all pairs of the tile, ordered by digit.
template <class Key>
struct TileSpace {
  Key keys[kPairTile];
  std::uint32_t numbers[kPairTile];
  unsigned places[kDigits * kThreads];
  unsigned first[kDigits];  // the number of the first pair of each digit
  movement::WarpSums sums;
};

template <class Key>
TAPEDECK_DEVICE void number_pairs(const Pass<Key>& p, TileSpace<Key>& s, int begin, int end) {
  for (int d = 0; d < kDigits; ++d) s.places[d * kThreads + threadIdx.x] = 0;
  sync_block();
  for (int i = begin; i < end; ++i) ++s.places[p.digit(s.keys[i]) * kThreads + threadIdx.x];
  sync_block();
  unsigned* const own = s.places + threadIdx.x * kDigits;  // as many counters for each thread as there are digits
  unsigned sum = 0, total = 0;
  for (int d = 0; d < kDigits; ++d) sum += own[d];
  unsigned before = movement::scan_block(sum, s.sums, total);
  for (int d = 0; d < kDigits; ++d) {
    const unsigned count = own[d];
    own[d] = before;
    before += count;
  }
  sync_block();
  if (threadIdx.x < kDigits) s.first[threadIdx.x] = s.places[threadIdx.x * kThreads];
  sync_block();
}

template <class Key>
TAPEDECK_KERNEL void place_kernel(const Pass<Key> p) {
  TAPEDECK_SHARED TileSpace<Key> s;
  constexpr int kOwn = kPairTile / kThreads;
  for (std::int64_t job = blockIdx.x; job < p.lines * p.tiles; job += gridDim.x) {
    const std::int64_t line = job / p.tiles, tile = job - line * p.tiles, first = line * p.n + tile * kPairTile;
    const std::int64_t left = p.n - tile * kPairTile;
    const int count = left < kPairTile ? static_cast<int>(left) : kPairTile;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
      s.keys[i] = p.from.keys[first + i];
      s.numbers[i] = p.from.numbers[first + i];
    }
    const int begin = static_cast<int>(threadIdx.x) * kOwn, end = begin + kOwn < count ? begin + kOwn : count;
    number_pairs(p, s, begin, end);
    for (int i = begin; i < end; ++i) {
      const int digit = p.digit(s.keys[i]);
      const unsigned number = s.places[digit * kThreads + threadIdx.x]++ - s.first[digit];
      const std::int64_t at = line * p.n + p.counts[(line * kDigits + digit) * p.tiles + tile] + number;
      p.to.keys[at] = s.keys[i];
      p.to.numbers[at] = s.numbers[i];
    }
    sync_block();
  }
}

template <class Key>
void sort_long_lines(const KernelCall& call, PairSpace<Key>& space, std::int64_t lines, std::int64_t n, int bits) {
  Pass<Key> p{space.pairs, space.other, space.counts, lines, n, (n + kPairTile - 1) / kPairTile, 0};
  const std::int64_t jobs = lines * p.tiles, most = 16 * kMaxBlocks;
  const Launch all{.blocks = jobs < most ? jobs : most}, each_line{.blocks = lines < most ? lines : most};
  for (; p.shift < bits; p.shift += 4) {
    launch(call, &count_kernel<Key>, all, p);
    launch(call, &add_up_kernel<Key>, each_line, p);
    launch(call, &place_kernel<Key>, all, p);
    const Pairs<Key> from = p.from;
    p.from = p.to;
    p.to = from;
  }
  space.pairs = p.from;
  space.other = p.to;
}

}  // namespace

namespace movement {

template <class Key>
void sort_pairs(const KernelCall& call, PairSpace<Key>& space, std::int64_t lines, std::int64_t n, int bits) {
  if (lines == 0 || n < 2) return;
  if (n <= kShortLine)
    sort_short_lines(call, space.pairs, lines, n);
  else
    sort_long_lines(call, space, lines, n, bits);
}

template void sort_pairs(const KernelCall&, PairSpace<std::uint32_t>&, std::int64_t, std::int64_t, int);
template void sort_pairs(const KernelCall&, PairSpace<std::uint64_t>&, std::int64_t, std::int64_t, int);

}  // namespace movement
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
