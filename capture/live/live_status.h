// How far a program is, as it tells in the file `status` of its folder: 64 bytes that are overwritten in place.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck {
namespace live TAPEDECK_API {

struct Status {
  std::int64_t ops = 0, steps = 0, dropped = 0;
  std::int64_t live = 0, peak = 0;  // bytes
  std::int64_t time_ns = 0;         // since the program was connected
};

bool write_status(int folder, const Status& status) noexcept;
// False if there is none, or if it is damaged or just being written.
bool read_status(int folder, Status* status) noexcept;

}  // namespace TAPEDECK_API
}  // namespace tapedeck
