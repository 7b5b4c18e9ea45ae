#include <tapedeck/capture/planner/place/check_placement.h>

#include <tapedeck/capture/planner/place/alive_steps.h>

#include <fmt/format.h>

#include <climits>
#include <cstdint>
#include <map>
#include <tuple>

namespace tapedeck {

namespace {

std::string find_misplaced(const std::vector<Tenant>& buffers, const Offsets& placed, std::int64_t chunk_bytes) {
  std::map<std::int32_t, std::int64_t> ends;  // by arena
  std::map<std::int32_t, std::int64_t> largest;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Tenant& b = buffers[i];
    const std::int64_t offset = placed.offsets[i];
    if (b.bytes == 0 || Stretches(b).is_over()) continue;
    if (offset < 0) return fmt::format("buffer {} has no offset", i);
    if (offset % b.alignment != 0) return fmt::format("buffer {} at {} is not aligned to {}", i, offset, b.alignment);
    if (b.fixed >= 0 && offset != b.fixed) return fmt::format("buffer {} at {} is fixed at {}", i, offset, b.fixed);
    const std::int32_t arena = placed.arena.empty() ? 0 : placed.arena[i];
    ends[arena] = std::max(ends[arena], offset + b.bytes);
    largest[arena] = std::max(largest[arena], b.bytes);
  }
  std::int64_t sum = 0;
  for (const auto& [arena, end] : ends) {
    sum += end;
    if (chunk_bytes > 0 && end > std::max(chunk_bytes, largest[arena]))
      return fmt::format("arena {} holds {} bytes, more than {}", arena, end, chunk_bytes);
  }
  return sum == placed.end ? "" : fmt::format("the end is {}, not {}", sum, placed.end);
}

struct Event {
  std::int32_t step;
  bool begins;  // sorts ends before beginnings at the same step
  std::int32_t buffer;
};

}  // namespace

std::string find_fault(const std::vector<Tenant>& buffers, const Offsets& placed, std::int64_t chunk_bytes) {
  if (placed.offsets.size() != buffers.size() || (!placed.arena.empty() && placed.arena.size() != buffers.size()))
    return fmt::format("{} offsets for {} buffers", placed.offsets.size(), buffers.size());
  std::string fault = find_misplaced(buffers, placed, chunk_bytes);
  if (!fault.empty()) return fault;
  std::vector<Event> events;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes == 0) continue;
    each_alive(buffers[i], [&](Steps steps) {
      events.push_back({steps.first, true, static_cast<std::int32_t>(i)});
      if (steps.last < INT32_MAX) events.push_back({steps.last + 1, false, static_cast<std::int32_t>(i)});
    });
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.step, a.begins, a.buffer) < std::tuple(b.step, b.begins, b.buffer);
  });
  // The live buffers, by arena and offset. They do not overlap, so a new buffer can only overlap its two neighbours in this
  // map.
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> alive;
  for (const Event& e : events) {
    const std::int64_t offset = placed.offsets[e.buffer];
    const std::int32_t arena = placed.arena.empty() ? 0 : placed.arena[e.buffer];
    if (!e.begins) {
      alive.erase({arena, offset});
      continue;
    }
    const auto clash = [&](std::int32_t k) { return fmt::format("buffers {} and {} overlap in step {}", k, e.buffer, e.step); };
    const auto above = alive.lower_bound({arena, offset});
    if (above != alive.end() && above->first.first == arena && above->first.second < offset + buffers[e.buffer].bytes)
      return clash(above->second);
    if (above != alive.begin()) {
      const auto below = std::prev(above);
      if (below->first.first == arena && below->first.second + buffers[below->second].bytes > offset)
        return clash(below->second);
    }
    alive.emplace(std::pair(arena, offset), e.buffer);
  }
  return "";
}

}  // namespace tapedeck
