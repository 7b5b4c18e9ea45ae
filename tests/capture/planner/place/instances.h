// Random buffers that use every field of Tenant, buffers like those of training steps, and a judge of placements. The judge
// is the oracle: it looks at every pair of buffers at every step.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::test {

inline bool needs(const Tenant& b, std::int32_t step) {
  if (step < b.birth || step > b.death || b.bytes == 0) return false;
  for (const Steps& hole : b.holes)
    if (hole.first <= step && step <= hole.last) return false;
  return true;
}

inline std::int32_t last_step(const std::vector<Tenant>& buffers) {
  std::int32_t last = 0;
  for (const Tenant& b : buffers) last = std::max(last, b.death);
  return last;
}

inline std::int64_t most_needed(const std::vector<Tenant>& buffers) {
  std::int64_t most = 0;
  for (std::int32_t step = 0; step <= last_step(buffers); ++step) {
    std::int64_t needed = 0;
    for (const Tenant& b : buffers) needed += needs(b, step) ? b.bytes : 0;
    most = std::max(most, needed);
  }
  return most;
}

inline std::int32_t arena_of(const Offsets& placed, std::size_t i) { return placed.arena.empty() ? 0 : placed.arena[i]; }

// Describes the first fault of a placement; "" if there is none.
inline std::string judge(const std::vector<Tenant>& buffers, const Offsets& placed) {
  if (placed.offsets.size() != buffers.size()) return "not an offset for each";
  const std::int32_t last = last_step(buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::string name = "buffer " + std::to_string(i);
    if (placed.offsets[i] < 0 || placed.offsets[i] % buffers[i].alignment != 0) return name + " is not aligned";
    if (buffers[i].bytes > 0 && buffers[i].fixed >= 0 && placed.offsets[i] != buffers[i].fixed)
      return name + " is not where it is fixed";
    for (std::size_t k = 0; k < i; ++k) {
      if (arena_of(placed, i) != arena_of(placed, k) || placed.offsets[i] >= placed.offsets[k] + buffers[k].bytes ||
          placed.offsets[k] >= placed.offsets[i] + buffers[i].bytes)
        continue;
      for (std::int32_t step = 0; step <= last; ++step)
        if (needs(buffers[i], step) && needs(buffers[k], step))
          return name + " overlaps " + std::to_string(k) + " in step " + std::to_string(step);
    }
  }
  std::vector<std::int64_t> ends;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ends.resize(std::max(ends.size(), static_cast<std::size_t>(arena_of(placed, i)) + 1), 0);
    if (buffers[i].bytes > 0)
      ends[arena_of(placed, i)] = std::max(ends[arena_of(placed, i)], placed.offsets[i] + buffers[i].bytes);
  }
  std::int64_t sum = 0;
  for (std::int64_t end : ends) sum += end;
  return sum == placed.end ? "" : "the end is not as stated";
}

struct Kind {
  int buffers = 60, steps = 40;
  bool holes = true;
  std::vector<std::int64_t> alignments = {1, 3, 64, 256};
};

inline std::vector<Tenant> random_tenants(unsigned seed, const Kind& kind = {}) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  std::vector<Tenant> buffers(static_cast<std::size_t>(1 + pick(kind.buffers)));
  const int longest = 1 + pick(kind.steps), largest = 1 + pick(3000);
  for (Tenant& b : buffers) {
    b.birth = pick(kind.steps);
    b.death = std::min(b.birth + (pick(4) ? pick(longest) : 0), kind.steps - 1);  // many buffers live for a single step
    b.bytes = pick(10) ? 1 + pick(largest) : 0;
    b.alignment = kind.alignments[pick(static_cast<int>(kind.alignments.size()))];
    for (std::int32_t at = b.birth + 1; kind.holes && at < b.death && pick(2);) {
      const Steps hole{at + pick(3), at + 3 + pick(5)};
      if (hole.last >= b.death) break;
      b.holes.push_back(hole);
      at = hole.last + 2;
    }
  }
  return buffers;
}

// About n buffers as in a training step: values that forward saves for backward, short-lived values, workspace, gradients
// that are passed on, and gradients that stay to the end. Short-lived values and gradients that are passed on end at most
// `longest` steps of the order after the layer that makes them.
inline std::vector<Tenant> training_step(int n, unsigned seed, int longest) {
  std::mt19937 random(seed);
  const auto pick = [&](int k) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(k)); };
  std::vector<Tenant> buffers;
  const std::int32_t layers = std::max(n / 6, 1), steps = layers * 4;
  std::int64_t block = 1024;
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const std::int32_t forward = layer * 2, backward = steps - 1 - layer * 2;
    if (layer % 97 == 0) block = std::int64_t{512} << pick(10);
    const std::int64_t bytes = block * (1 + pick(4));
    buffers.push_back({bytes, 64, forward, backward});
    buffers.push_back({bytes * (1 + pick(3)), 64, forward, forward + 1 + pick(longest)});
    buffers.push_back({bytes / (1 + pick(3)) + pick(100) + 1, 64, forward + 1, forward + 1});
    buffers.push_back({bytes, 64, backward - 1, backward + 1 + pick(longest)});
    buffers.push_back({bytes * 2 + pick(5000), 64, backward, backward});
    buffers.push_back({64 + pick(4096), 64, backward, steps + 2});
  }
  return buffers;
}

// Cuts a rectangle of `bytes` x `steps` into pieces, always the largest piece into two. So the pieces fit into `bytes` again
// without any gap.
inline std::vector<Tenant> cut_up(unsigned seed, int pieces, std::int64_t bytes, std::int32_t steps) {
  std::mt19937 random(seed);
  const auto pick = [&](std::int64_t k) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(k)); };
  std::vector<Tenant> buffers = {{bytes, 1, 0, steps - 1}};
  const auto shape = [&](const Tenant& b) {
    return std::pair(static_cast<double>(b.bytes) / static_cast<double>(bytes), (b.death - b.birth + 1.0) / steps);
  };
  const auto area = [&](const Tenant& b) { return shape(b).first * shape(b).second; };
  while (static_cast<int>(buffers.size()) < pieces) {
    Tenant& whole =
        *std::max_element(buffers.begin(), buffers.end(), [&](const Tenant& x, const Tenant& y) { return area(x) < area(y); });
    Tenant part = whole;
    const std::int64_t length = whole.death - whole.birth + 1;
    if (whole.bytes == 1 || (length > 1 && (pick(5) == 0 || shape(whole).first < shape(whole).second))) {
      whole.death = whole.birth + static_cast<std::int32_t>(pick(length - 1));
      part.birth = whole.death + 1;
    } else {
      part.bytes = 1 + pick(whole.bytes - 1);
      whole.bytes -= part.bytes;
    }
    buffers.push_back(part);
  }
  for (std::size_t i = buffers.size() - 1; i > 0; --i) std::swap(buffers[i], buffers[pick(static_cast<std::int64_t>(i) + 1)]);
  return buffers;
}

}  // namespace tapedeck::test
