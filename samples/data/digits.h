// Reads digits.csv.gz: rows of 64 pixels from 0 to 16, and a label.
#pragma once

#include <tapedeck/engine/ir/error.h>

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace samples {

constexpr int kSide = 8, kPixels = kSide * kSide;

// The digits of the file, in its order.
struct Digits {
  std::vector<float> pixels;  // rows of 64 pixels, scaled to [0, 1]
  std::vector<std::int32_t> labels;
  int rows() const { return static_cast<int>(labels.size()); }
};

// Reads the file. Throws FileError unless it has more than `least` rows.
inline Digits load_digits(const std::string& path, int least) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw tapedeck::FileError(path + ": cannot be opened");
  Digits d;
  char line[1024];
  while (gzgets(file.get(), line, sizeof line)) {
    const char* at = line;
    for (int i = 0; i <= kPixels; ++i) {
      char* end = nullptr;
      const long v = std::strtol(at, &end, 10);
      if (end == at || v < 0 || v > 16)
        throw tapedeck::FileError(path + ": row " + std::to_string(d.rows() + 1) + " is not 64 pixels and a label");
      if (i < kPixels)
        d.pixels.push_back(static_cast<float>(v) / 16.0f);
      else
        d.labels.push_back(static_cast<std::int32_t>(v));
      at = *end == ',' ? end + 1 : end;
    }
  }
  if (d.rows() <= least) throw tapedeck::FileError(path + ": too few rows");
  return d;
}

}  // namespace samples
