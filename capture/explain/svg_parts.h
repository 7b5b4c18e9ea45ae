// What the pictures in SVG share: text, units of bytes and steps of axes.
#pragma once

#include <cstdint>
#include <string>

namespace tapedeck {

// Text that XML accepts: valid UTF-8 without control characters.
std::string xml_text(const std::string& text);

struct SizeUnit {
  const char* name;  // "MiB"
  double bytes;
};

// The largest unit of which `most` bytes are at least two.
SizeUnit unit_for(std::int64_t most);

// 1, 2 or 5 times a power of ten, so that about `wanted` of them make `most`.
double tick_step(double most, int wanted);

}  // namespace tapedeck
