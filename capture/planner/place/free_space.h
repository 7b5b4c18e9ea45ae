// The buffers placed so far, and the gaps that they leave for a lifetime.
//
// The structure is a segment tree over time. A node keeps two sets of bytes: bytes taken during all of its steps, by buffers
// that cover the node; and bytes taken at any of its steps. A lifetime consists of a few nodes. The bytes in its way are the
// bytes taken anywhere in these nodes, and the bytes that cover the nodes above. The sets hold ranges, padding included, and
// ranges that touch are joined. Placed buffers are packed, so the ranges are few: the cost depends on the number of gaps, not
// of buffers.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck {

// Every buffer's alignment is a multiple of this, so a gap shorter than this is of no use. 1 with several arenas.
std::int64_t granule_of(const PlaceProblem& p, const Chunks& chunks);

// The placed buffers of one attempt. insert() adds a buffer at an offset; find() returns the lowest (first fit) or the tightest
// (best fit) free offset for a buffer. Not thread safe.
class Space {
 public:
  explicit Space(const PlaceProblem& p, const Chunks& chunks = {});

  Chunks& chunks() { return chunks_; }  // the caller may add arenas where no buffer lies yet
  void clear();                         // removes all buffers and keeps the memory
  void insert(std::int32_t i, const Tenant& b, std::int64_t offset);
  std::int64_t find(std::int32_t i, const Tenant& b, Fit fit);
  bool is_free(const Tenant& b, std::int64_t offset);  // true if `b` could lie at `offset`
  // The work since clear(), counted in look-ups of some nanoseconds each. An insertion counts for several look-ups.
  std::int64_t look_ups() const { return look_ups_; }

 private:
  struct Bytes {
    std::int64_t first, end;
  };
  using Taken = std::vector<Bytes>;  // ascending, with gaps between the ranges
  struct Cursor {
    const Bytes *at, *end;
  };

  void add(Taken& taken, std::int64_t first, std::int64_t end);
  void gather(const Tenant& b);  // collects the bytes in the way of `b` into ways_
  std::int64_t next_fit(std::int64_t from, const Tenant& b);
  std::int64_t first_fit(const Tenant& b);
  std::int64_t best_fit(const Tenant& b);
  std::int64_t best_of_all(const Tenant& b);

  Chunks chunks_;
  std::int64_t granule_ = 1;
  std::int32_t leaves_ = 1;
  std::vector<Taken> covering_, any_;  // by node
  std::vector<Cursor> ways_;
  std::vector<Bytes> found_;
  std::int64_t look_ups_ = 0;
};

// As Space, for fewer buffers: a list of all buffers in order of offset, in blocks. The buffers must outlive it.
class SmallSpace {
 public:
  // A buffer takes all bytes up to the next multiple of `granule`, as in Space.
  explicit SmallSpace(const Chunks& chunks = {}, std::int64_t granule = 1) : chunks_(chunks), granule_(granule) {}

  void insert(std::int32_t i, const Tenant& b, std::int64_t offset);
  std::int64_t find(std::int32_t i, const Tenant& b, Fit fit);
  std::int64_t look_ups() const { return 0; }  // not counted, because the buffers are few

 private:
  struct Bytes {
    std::int64_t first, end;
    const Tenant* with_holes;  // null if the buffer has no holes
  };
  struct Block {
    static constexpr std::size_t kMost = 64;
    std::size_t count = 0;
    // Lives lie close together, because most do not meet the life of the buffer that is placed. Unused ones meet none.
    std::int32_t birth[kMost], death[kMost];
    Bytes taken[kMost];

    Block();
    void insert(const Tenant& b, const Bytes& bytes);
    void move_half_to(Block* next);
    std::uint64_t meeting(const Tenant& b) const;
  };

  const Chunks chunks_;
  const std::int64_t granule_;
  std::vector<std::int64_t> lowest_;            // by block: its first offset
  std::vector<std::unique_ptr<Block>> blocks_;  // by offset
};

}  // namespace tapedeck
