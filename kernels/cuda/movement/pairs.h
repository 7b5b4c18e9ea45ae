// Pairs of an unsigned key and a number, sorted by key: the order of a sort, and the groups of equal places of a scatter.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace movement {

// Lines of n pairs each. Pair i of line l has the key keys[l * n + i]. A key is 32 or 64 bits wide.
template <class Key>
struct Pairs {
  Key* keys = nullptr;
  std::uint32_t* numbers = nullptr;
};

// Lines of at most this many pairs are sorted by one block each.
inline constexpr std::int64_t kShortLine = 4096;

// The workspace of a sort of `lines` lines of n < 2^32 pairs, laid out from `base` on.
template <class Key>
class PairSpace {
 public:
  PairSpace(void* base, std::int64_t lines, std::int64_t n) : base_(static_cast<char*>(base)) {
    pairs = take_pairs(lines * n);
    if (n <= kShortLine) return;
    other = take_pairs(lines * n);
    counts = take<std::uint32_t>(counts_of(lines, n));
  }

  static std::int64_t bytes(std::int64_t lines, std::int64_t n) { return PairSpace(nullptr, lines, n).used_; }

  Pairs<Key> pairs, other;
  std::uint32_t* counts = nullptr;

 private:
  static std::int64_t counts_of(std::int64_t lines, std::int64_t n);

  template <class T>
  T* take(std::int64_t items) {
    char* const at = base_ ? base_ + used_ : nullptr;
    used_ += (items * static_cast<std::int64_t>(sizeof(T)) + 255) / 256 * 256;
    return reinterpret_cast<T*>(at);
  }
  Pairs<Key> take_pairs(std::int64_t items) {
    Key* const keys = take<Key>(items);
    return {keys, take<std::uint32_t>(items)};
  }

  char* base_;
  std::int64_t used_ = 0;
};

// The lines of long sorts are cut into tiles of this many pairs, and a pass sorts by four bits of the key.
inline constexpr int kPairTile = 2048, kDigits = 16;

template <class Key>
std::int64_t PairSpace<Key>::counts_of(std::int64_t lines, std::int64_t n) {
  return lines * kDigits * ((n + kPairTile - 1) / kPairTile);
}

// The bits that the numbers 0 ... largest need.
inline int bits_for(std::uint64_t largest) {
  int bits = 1;
  while (bits < 64 && largest >> bits != 0) ++bits;
  return bits;
}

// Sorts every line of space.pairs by the lowest `bits` bits of the keys; all bits above are zero. The numbers of a line must
// ascend: pairs of equal keys keep their order. The sorted pairs lie in space.pairs; a long sort may swap it with space.other.
// Defined for keys of 32 and 64 bits.
template <class Key>
void sort_pairs(const KernelCall& call, PairSpace<Key>& space, std::int64_t lines, std::int64_t n, int bits);

}  // namespace movement
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
