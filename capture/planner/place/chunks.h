// Several arenas instead of one, none larger than a limit. All arenas lie end to end in one range of offsets, and no buffer may
// cross the joint of two arenas. The placement code is the same for one arena and for several: it calls settle() instead of
// align_up().
#pragma once

#include <tapedeck/capture/planner/place/place_problem.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

struct Attempt;

// The sizes of all arenas in one range of offsets. Default: one arena without a limit.
class Chunks {
 public:
  Chunks() = default;  // one arena of any size
  // Arenas of the given sizes, followed by as many arenas of `chunk` bytes as needed.
  Chunks(const std::vector<std::int64_t>& sizes, std::int64_t chunk);

  bool is_one() const { return chunk_ == 0; }
  void add(std::int64_t bytes) { starts_.push_back(starts_.back() + bytes); }  // adds one arena
  void set_chunk(std::int64_t bytes) { chunk_ = bytes; }
  // The lowest offset at or above `offset` at which the buffer lies inside one arena, and is aligned relative to that arena.
  std::int64_t settle(std::int64_t offset, const Tenant& b) const {
    return chunk_ == 0 ? align_up(offset, b.alignment) : settle_in_one(offset, b);
  }
  std::int32_t arena_of(std::int64_t offset) const;
  std::int64_t start_of(std::int32_t arena) const;

 private:
  std::int64_t settle_in_one(std::int64_t offset, const Tenant& b) const;

  std::vector<std::int64_t> starts_{0};  // the starts of the arenas of given sizes, and of the first arena that follows them
  std::int64_t chunk_ = 0;               // the size of the arenas that follow; 0: there is one arena
};

// Places the buffers that are larger than a chunk: largest first, each as low as possible in the arenas made for earlier ones,
// or else at the start of a new arena of exactly its size. So an arena that is larger than a chunk is as large as one buffer in
// it. `meet` says whether two buffers must not share bytes. The first form takes the buffers that are alive together, and finds
// them without a test of every pair.
struct Oversized {
  std::vector<std::int64_t> sizes;    // the sizes of the new arenas
  std::vector<std::int64_t> offsets;  // by buffer; -1: the buffer is not larger than a chunk
};
Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes);
Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes,
                          const std::function<bool(std::int32_t, std::int32_t)>& meet);

// Turns one range of offsets into offsets inside arenas. `end` is the sum of the bytes that the arenas use.
Offsets split_up(const PlaceProblem& p, const Chunks& chunks, const Attempt& found, std::size_t n_buffers);

// Places buffers into arenas of at most options.chunk_bytes. A larger buffer gets an arena of its own size, which other buffers
// may use as well. First come greedy placements into arenas of chunk_bytes and, if these end more than a hundredth above the
// bound, into smaller arenas of several sizes. Then the best order is changed at random, for the work or the time that the
// options give. Hints are ignored. (chunk_search.cpp)
Offsets place_in_chunks(const PlaceProblem& p, const PlaceOptions& options, std::size_t n_buffers);

}  // namespace tapedeck
