// Several arenas instead of one, none larger than a cap: all are laid end to end in one range of offsets, and no buffer may lie
// across a joint. What places buffers in one arena places them in several, if it asks settle() where it would have aligned.
#pragma once

#include <tapedeck/capture/planner/place/place_problem.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

struct Attempt;

class Chunks {
 public:
  Chunks() = default;  // one arena, of any size
  // Arenas of these sizes, then as many of `chunk` bytes as it takes.
  Chunks(const std::vector<std::int64_t>& sizes, std::int64_t chunk);

  bool is_one() const { return chunk_ == 0; }
  void add(std::int64_t bytes) { starts_.push_back(starts_.back() + bytes); }  // an arena more of a given size
  void set_chunk(std::int64_t bytes) { chunk_ = bytes; }
  // The lowest offset from `offset` on where the buffer is aligned, in its arena, and lies in one.
  std::int64_t settle(std::int64_t offset, const Tenant& b) const {
    return chunk_ == 0 ? align_up(offset, b.alignment) : settle_in_one(offset, b);
  }
  std::int32_t arena_of(std::int64_t offset) const;
  std::int64_t start_of(std::int32_t arena) const;

 private:
  std::int64_t settle_in_one(std::int64_t offset, const Tenant& b) const;

  std::vector<std::int64_t> starts_{0};  // of the arenas of given sizes, and of the first that follows
  std::int64_t chunk_ = 0;               // 0: there is one arena
};

// Buffers larger than a chunk, largest first, each as low as may be in the arenas made for those before it, or else at the
// start of one of its own size. So what is larger than a chunk is as large as one buffer in it. `meet` says whether two buffers
// may not share bytes; without it that is when both are alive, and is found without looking at every two.
struct Oversized {
  std::vector<std::int64_t> sizes;    // of their arenas
  std::vector<std::int64_t> offsets;  // by buffer; -1: not one of these
};
Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes);
Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes,
                          const std::function<bool(std::int32_t, std::int32_t)>& meet);

// From one range of offsets to arenas. `end` is the sum of what each holds.
Offsets split_up(const PlaceProblem& p, const Chunks& chunks, const Attempt& found, std::size_t n_buffers);

// Placement into arenas of at most options.chunk_bytes; larger buffers are in arenas of their own size, which others may use as
// well. Greedy, into arenas of that size and, where more than a hundredth of the bound is lost at the joints, of several
// smaller ones; then, for the work or the time that the options give, random changes of the best order. Hints are not looked
// at. (chunk_search.cpp)
Offsets place_in_chunks(const PlaceProblem& p, const PlaceOptions& options, std::size_t n_buffers);

}  // namespace tapedeck
