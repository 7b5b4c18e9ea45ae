// What has been placed so far, asked for the gaps that a lifetime leaves.
//
// A segment tree over time. Each node keeps two sets of bytes: those taken during all of its steps by buffers that cover it,
// and those taken at any of its steps. A lifetime is a few nodes; what is in its way is what is taken anywhere in these and
// what covers the nodes above. The sets hold ranges joined where they touch, padding included, and since buffers are packed
// these are few: what costs is the number of gaps, not of buffers.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

class Space {
 public:
  explicit Space(const PlaceProblem& p, const Chunks& chunks = {});

  Chunks& chunks() { return chunks_; }  // more arenas may follow, where nothing has been placed
  void clear();                         // as if nothing had been inserted; keeps the memory
  void insert(std::int32_t i, const Tenant& b, std::int64_t offset);
  std::int64_t find(std::int32_t i, const Tenant& b, Fit fit);
  bool is_free(const Tenant& b, std::int64_t offset);  // whether `b` could lie there
  std::int64_t look_ups() const { return look_ups_; }  // since it was cleared: some nanoseconds each

 private:
  struct Bytes {
    std::int64_t first, end;
  };
  using Taken = std::vector<Bytes>;  // ascending, with gaps between
  struct Cursor {
    const Bytes *at, *end;
  };

  void add(Taken& taken, std::int64_t first, std::int64_t end);
  void gather(const Tenant& b);  // what is in its way, into ways_
  std::int64_t next_fit(std::int64_t from, const Tenant& b);
  std::int64_t first_fit(const Tenant& b);
  std::int64_t best_fit(const Tenant& b);
  std::int64_t best_of_all(const Tenant& b);

  Chunks chunks_;
  std::int64_t granule_ = 0;  // of which every buffer's alignment is a multiple: bytes up to the next are of no use
  std::int32_t leaves_ = 1;
  std::vector<Taken> covering_, any_;  // by node
  std::vector<Cursor> ways_;
  std::vector<Bytes> found_;
  std::int64_t look_ups_ = 0;
};

// The same for few buffers: all of them, in order of offset. They must outlive it.
class SmallSpace {
 public:
  explicit SmallSpace(const Chunks& chunks = {}) : chunks_(chunks) {}

  void insert(std::int32_t i, const Tenant& b, std::int64_t offset);
  std::int64_t find(std::int32_t i, const Tenant& b, Fit fit);
  std::int64_t look_ups() const { return 0; }  // few, that is

 private:
  struct Entry {
    std::int64_t offset, end;
    std::int32_t birth, death;
    const Tenant* with_holes;  // null: it has none
  };

  const Chunks chunks_;
  std::vector<Entry> by_offset_;
};

}  // namespace tapedeck
