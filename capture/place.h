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

// The best of several orders, each by first fit and by best fit; stops as soon as one meets the bound. Deterministic.
Offsets place(const std::vector<Tenant>& buffers);

}  // namespace TAPEDECK_API
