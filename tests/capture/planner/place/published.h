// Reads published instances from ../shared/data, if these files exist.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tapedeck::test {

// Reads columns id,lower,upper,size and no others; a life ends before step `upper`. It does not use the library's reader.
inline std::vector<Tenant> read_instance(const std::filesystem::path& path) {
  std::vector<Tenant> buffers;
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  EXPECT_EQ(line, "id,lower,upper,size") << path;
  while (std::getline(stream, line) && !line.empty()) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::int64_t id = 0, lower = 0, upper = 0, size = 0;
    fields >> id >> lower >> upper >> size;
    buffers.push_back({size, 1, static_cast<std::int32_t>(lower), static_cast<std::int32_t>(upper - 1)});
  }
  return buffers;
}

}  // namespace tapedeck::test
