// Linux says how much memory is available in /proc/meminfo. A container may have less: the control groups of the process, from
// its own up to the root, have limits in /sys/fs/cgroup, in one of two layouts. Files that the kernel only keeps to read them
// faster count as free.
#include <tapedeck/viewer/planning/available_memory.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

namespace tapedeck::viewer {

namespace {

// The number behind a word at the start of a line ("MemAvailable:   12 kB"), or alone in the file if the word is empty. -1 if
// there is none, as where a limit reads "max".
std::int64_t number_in(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(word)) continue;
    const std::size_t digits = line.find_first_not_of(" \t:", word.size());
    std::int64_t number = 0;
    if (digits != line.npos && std::from_chars(line.data() + digits, line.data() + line.size(), number).ec == std::errc())
      return number;
    return -1;
  }
  return -1;
}

// The names of the files of a hierarchy of control groups.
struct Groups {
  const char *line, *folder;  // how its line in /proc/self/cgroup begins, behind its number; where its groups are
  const char *limit, *used;
};
constexpr Groups kHierarchies[] = {{"::/", "/sys/fs/cgroup", "/memory.max", "/memory.current"},
                                   {":memory:/", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes"}};

std::int64_t left_in_group(const Groups& groups, const std::string& group) {
  const std::string folder = groups.folder + group;
  const std::int64_t limit = number_in(folder + groups.limit, ""), used = number_in(folder + groups.used, "");
  if (limit < 0 || used < 0) return -1;
  const std::int64_t files = std::max<std::int64_t>(number_in(folder + "/memory.stat", "inactive_file"), 0);
  return std::max<std::int64_t>(limit - std::max<std::int64_t>(used - files, 0), 0);
}

// "0::/a/b" in /proc/self/cgroup: the group /a/b. The root, "", if there is no such line.
std::string own_group(const Groups& groups) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::string_view line_start = groups.line;
    if (colon != line.npos && line.compare(colon, line_start.size(), line_start) == 0)
      return line.substr(colon + line_start.size() - 1);
  }
  return "";
}

std::int64_t smaller_known(std::int64_t a, std::int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); }

}  // namespace

std::int64_t available_memory_bytes() {
  const std::int64_t kilobytes = number_in("/proc/meminfo", "MemAvailable");
  std::int64_t available = kilobytes < 0 ? -1 : kilobytes * 1024;
  for (const Groups& groups : kHierarchies)
    for (std::string group = own_group(groups);; group.resize(group.rfind('/'))) {  // the group, then those around it
      available = smaller_known(available, left_in_group(groups, group));
      if (group.find('/') == std::string::npos) break;
    }
  return available;
}

void require_memory(const std::string& what, std::int64_t needed, std::int64_t available) {
  if (available < 0 || needed <= available) return;
  throw ExecutionError(what + " needs " + human_bytes(needed) + " of memory, and " + human_bytes(available) +
                       " are available here: take a smaller budget, or record the step with a smaller batch");
}

}  // namespace tapedeck::viewer
