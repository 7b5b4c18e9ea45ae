#include <tapedeck/capture/check/segment_paths.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace tapedeck {

namespace {

constexpr std::size_t kMostReachBytes = std::size_t{256} << 20;
constexpr std::size_t kShortLook = 64;  // finds_path() looks at this many segments at most

}  // namespace

// The latest predecessors make a forest. Segments are numbered so that the segments below a segment have the numbers after its
// own. Then "is below" is a comparison.
Reach::Reach(const std::vector<Segment>& segments)
    : segments_(segments), start_(segments.size()), end_(segments.size()), bit_of_(segments.size(), kNotCovered) {
  constexpr std::int32_t kRoot = -1;
  const std::size_t n = segments.size();
  std::vector<std::int32_t> latest(n, kRoot), hanging(n, 1);
  for (std::size_t s = 0; s < n; ++s)
    for (const std::int32_t t : segments[s].successors) latest[t] = static_cast<std::int32_t>(s);
  for (std::size_t s = n; s-- > 0;)
    if (latest[s] != kRoot) hanging[latest[s]] += hanging[s];
  std::int32_t next_root = 0;
  std::vector<std::int32_t> next(n);  // by segment: the number of the next segment below it
  for (std::size_t s = 0; s < n; ++s) {
    std::int32_t& number = latest[s] == kRoot ? next_root : next[latest[s]];
    start_[s] = number;
    end_[s] = number += hanging[s];
    next[s] = start_[s] + 1;
  }
}

bool Reach::leads_straight(std::int32_t from, std::int32_t to) const {
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  return start_[a] <= start_[b] && start_[b] < end_[a];
}

// Searches breadth first from `from`, until a segment leads straight to `to` or enough segments were looked at.
bool Reach::finds_path(std::int32_t from, std::int32_t to) const {
  if (from > to) return false;
  const std::vector<std::int32_t>& waiting = segments_[from].successors;
  if (leads_straight(from, to) || std::binary_search(waiting.begin(), waiting.end(), to)) return true;
  std::array<std::int32_t, kShortLook> seen = {from};
  std::size_t n_seen = 1;
  for (std::size_t i = 0; i < n_seen; ++i)
    for (const std::int32_t t : segments_[seen[i]].successors) {
      if (t > to || n_seen == kShortLook) break;
      const auto end = seen.begin() + static_cast<std::ptrdiff_t>(n_seen);
      if (std::find(seen.begin(), end, t) != end) continue;
      if (leads_straight(t, to)) return true;
      seen[n_seen++] = t;
    }
  return false;
}

std::size_t Reach::width() const {
  return 64 * std::max<std::size_t>(kMostReachBytes / 8 / std::max<std::size_t>(segments_.size(), 1), 1);
}

void Reach::cover(std::span<const std::int32_t> sources) {
  words_ = (sources.size() + 63) / 64;
  bits_.assign(segments_.size() * words_, 0);
  std::fill(bit_of_.begin(), bit_of_.end(), kNotCovered);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto s = static_cast<std::size_t>(sources[i]);
    bit_of_[s] = static_cast<std::int32_t>(i);
    bits_[s * words_ + i / 64] |= std::uint64_t{1} << (i % 64);
  }
  for (std::size_t s = 0; s < segments_.size(); ++s)
    for (const std::int32_t t : segments_[s].successors)
      for (std::size_t w = 0; w < words_; ++w) bits_[static_cast<std::size_t>(t) * words_ + w] |= bits_[s * words_ + w];
}

bool Reach::has_path(std::int32_t from, std::int32_t to) const {
  const auto bit = static_cast<std::size_t>(bit_of_[from]);
  return bits_[static_cast<std::size_t>(to) * words_ + bit / 64] >> (bit % 64) & 1;
}

}  // namespace tapedeck
