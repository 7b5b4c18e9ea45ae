#include <tapedeck/capture/planner/schedules/gap_index.h>

namespace tapedeck {

GapIndex::GapIndex(NodeId stages) : begun_(static_cast<std::size_t>(stages)) {
  while (leaves_ < begun_.size()) leaves_ *= 2;
  latest_.assign(leaves_ * 2, kNone);
}

void GapIndex::add(std::int32_t gap, NodeId from, NodeId to) {
  begun_[from].push_back({gap, to});
  update_above(from);
}

void GapIndex::remove(std::int32_t gap, NodeId from) {
  std::vector<Begun>& begun = begun_[from];
  const auto at = std::find_if(begun.begin(), begun.end(), [&](const Begun& b) { return b.number == gap; });
  *at = begun.back();
  begun.pop_back();
  update_above(from);
}

// Above an entry that keeps its latest end, everything stays as it is.
void GapIndex::update_above(NodeId from) {
  std::size_t i = leaves_ + static_cast<std::size_t>(from);
  NodeId latest = kNone;
  for (const Begun& gap : begun_[from]) latest = std::max(latest, gap.to);
  while (i > 0 && latest_[i] != latest) {
    latest_[i] = latest;
    i /= 2;
    if (i > 0) latest = std::max(latest_[2 * i], latest_[2 * i + 1]);
  }
}

}  // namespace tapedeck
