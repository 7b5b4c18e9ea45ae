// Offsets for buffers whose lifetimes are known: no two that are alive at the same time overlap, and the end of the highest is
// low.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Alive during steps birth..death, both included.
struct Tenant {
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;
  std::int32_t birth = 0;
  std::int32_t death = 0;
};

struct Offsets {
  std::vector<std::int64_t> offsets;  // by buffer; buffers of no bytes lie at 0
  std::int64_t end = 0;               // the highest offset + bytes
  std::int64_t bound = 0;             // most bytes alive at once: no placement ends lower
};

// Who writes a buffer and who is done with it when, in a run on several threads: moments of the simulated run (capture/simulate.h).
struct Occupation {
  std::int32_t segment = -1;        // of the first writer
  std::int32_t began = 0;           // when that segment began
  std::int32_t last_segment = -1;   // of its users the one that ended last
  std::int32_t ended = -1;          // when that was
  std::int32_t others_ended = -1;   // the same of all other users
};

// The best of several orders, each by first fit and by best fit; stops as soon as one meets the bound. Deterministic.
Offsets place(const std::vector<Tenant>& buffers);

// Two buffers share bytes only if the second is born after the death of the first and, as the run has it, all segments that use the first
// have ended when the second's begins, or the last of them is the second's own. Quadratic in the buffers that have bytes: nothing
// (end == -1) if these are more than kMostApart.
Offsets place_apart(const std::vector<Tenant>& buffers, const std::vector<Occupation>& when);
inline constexpr std::size_t kMostApart = 12000;

}  // namespace tapedeck
