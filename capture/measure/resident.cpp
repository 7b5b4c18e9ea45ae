// Linux writes it in /proc/self/status: "VmHWM:	  988988 kB".
#include <tapedeck/capture/measure/resident.h>

#include <charconv>
#include <fstream>
#include <string>

namespace tapedeck {

std::int64_t resident_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::int64_t kilobytes = 0;
    if (digits != line.npos && std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes).ec == std::errc() &&
        kilobytes > 0)
      return kilobytes * 1024;
  }
  return -1;
}

}  // namespace tapedeck
