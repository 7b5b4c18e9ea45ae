#include <tapedeck/capture/planner/schedules/live_tree.h>

#include <algorithm>

namespace tapedeck {

namespace {
constexpr std::int64_t kNoStage = -(std::int64_t{1} << 62);  // below anything that sums of bytes can reach
}

LiveTree::LiveTree(const std::vector<std::int64_t>& bytes) {
  while (leaves_ < bytes.size()) leaves_ *= 2;
  entries_.resize(leaves_ * 2);
  for (std::size_t i = 0; i < leaves_; ++i)
    entries_[leaves_ + i] = i < bytes.size() ? Entry{bytes[i], 0, 1} : Entry{kNoStage, 0, 0};
  for (std::size_t i = leaves_ - 1; i > 0; --i) combine(i);
}

inline bool LiveTree::combine(std::size_t i) {
  const Entry &left = entries_[2 * i], &right = entries_[2 * i + 1];
  Entry& entry = entries_[i];
  const std::int64_t most = std::max(left.most, right.most) + entry.added;
  const std::int32_t stages = (left.most >= right.most ? left.stages : 0) + (right.most >= left.most ? right.stages : 0);
  const bool changes = most != entry.most || stages != entry.stages;
  entry.most = most;
  entry.stages = stages;
  return changes;
}

void LiveTree::add(NodeId first, NodeId last, std::int64_t bytes) {
  if (first > last || bytes == 0) return;
  std::size_t highest = 2 * leaves_;  // of the entries that get the bytes
  const auto apply = [&](std::size_t i) {
    entries_[i].most += bytes;
    entries_[i].added += bytes;
    highest = std::min(highest, i);
  };
  const std::size_t low = leaves_ + static_cast<std::size_t>(first), high = leaves_ + static_cast<std::size_t>(last) + 1;
  for (std::size_t l = low, h = high; l < h; l /= 2, h /= 2) {
    if (l & 1) apply(l++);
    if (h & 1) apply(--h);
  }
  // The ways up from both ends are one after they have met. Above the entries that got the bytes, nothing changes beyond an
  // entry that stays as it is.
  std::size_t left = low, right = high - 1;
  for (; left / 2 != right / 2; left /= 2, right /= 2) {
    combine(left / 2);
    combine(right / 2);
  }
  for (left /= 2; left > 0; left /= 2)
    if (!combine(left) && left <= highest / 2) return;
}

void LiveTree::add(NodeId stage, std::int64_t bytes) {
  if (bytes == 0) return;
  std::size_t i = leaves_ + static_cast<std::size_t>(stage);
  entries_[i].most += bytes;
  for (i /= 2; i > 0; i /= 2)
    if (!combine(i)) return;
}

// Goes up from both ends of the range, as add() does. What was added to an entry above counts for all stages below it.
std::int64_t LiveTree::most(NodeId first, NodeId last) const {
  if (first > last) return 0;
  std::size_t l = leaves_ + static_cast<std::size_t>(first), r = leaves_ + static_cast<std::size_t>(last);
  std::int64_t left = entries_[l].most, right = entries_[r].most;
  for (; l / 2 != r / 2; l /= 2, r /= 2) {
    if (l % 2 == 0) left = std::max(left, entries_[l + 1].most);
    if (r % 2 == 1) right = std::max(right, entries_[r - 1].most);
    left += entries_[l / 2].added;
    right += entries_[r / 2].added;
  }
  std::int64_t most = std::max(left, right);
  for (l /= 2; l > 0; l /= 2) most += entries_[l].added;
  return most;
}

std::int64_t LiveTree::at(NodeId stage) const { return most(stage, stage); }

// Each inner entry passes the bytes that were added to it down to its two children, level by level, the last entry of a level
// first: so the levels can share the places of the outcome. All levels but the last have fewer entries than there are stages.
void LiveTree::read(std::vector<std::int64_t>* by_stage) const {
  std::vector<std::int64_t>& above = *by_stage;
  if (above.empty()) return;
  above[0] = 0;
  for (std::size_t level = 1; level < leaves_; level *= 2)
    for (std::size_t i = level; i-- > 0;) {
      const std::int64_t here = above[i] + entries_[level + i].added;
      if (2 * i < above.size()) above[2 * i] = here;
      if (2 * i + 1 < above.size()) above[2 * i + 1] = here;
    }
  for (std::size_t stage = 0; stage < above.size(); ++stage) above[stage] += entries_[leaves_ + stage].most;
}

LiveTree::Peak LiveTree::peak() const {
  if (entries_[1].stages == 0) return {};
  std::size_t i = 1;
  while (i < leaves_) i = entries_[2 * i].most >= entries_[2 * i + 1].most ? 2 * i : 2 * i + 1;
  return {entries_[1].most, static_cast<NodeId>(i - leaves_), entries_[1].stages};
}

}  // namespace tapedeck
