// The state of the exact search; see exact_skyline.h. A decision changes the state in small logged steps, and undo() takes them
// back in reverse order:
//
//   put(member)            the member lies at its low; every neighbour below its end is raised to the end
//   leave_empty(section)   every member that could lie on the section's floor is raised
//   after either           floors are found again; a section that holds more than the capacity is a conflict
#include <tapedeck/capture/planner/place/exact_skyline.h>

#include <algorithm>
#include <bit>

namespace tapedeck {

Skyline::Skyline(const PlacePart& part, std::int64_t capacity) : part_(part), capacity_(capacity), free_(part.size()) {
  // Decisions that leave a section empty get so many bits; more of them share the last bit.
  constexpr std::int32_t kEmptyDecisions = 256;
  words_ = (part.size() + kEmptyDecisions) / 64 + 1;
  last_bit_ = words_ * 64 - 1;
  const auto n = static_cast<std::size_t>(part.size()), sections = static_cast<std::size_t>(part.sections);
  offset_.assign(n, 0);
  level_.assign(n, -1);
  reasons_.assign(n * static_cast<std::size_t>(words_), 0);
  reason_count_.assign(n, 0);
  conflict_.assign(static_cast<std::size_t>(words_), 0);
  for (std::int32_t i = 0; i < part.size(); ++i) {
    low_.push_back(part.fixed[i] >= 0 ? part.fixed[i] : 0);
    if (part.fixed[i] >= 0 && part.fixed[i] + part.units[i] > capacity) possible_ = false;
  }
  if (part.has_fixed)
    for (std::int32_t i = 0; i < part.size(); ++i) low_[i] = settle(i, low_[i]);
  floor_.assign(sections, 0);
  count_.assign(sections, 0);
  top_.assign(sections, 0);
  free_units_.assign(sections, 0);
  is_touched_.assign(sections, 0);
  kept_at_.assign(sections, 0);
  rests_.assign(sections + 1, 0);
  for (std::int32_t t = 0; t < part.sections; ++t) {
    for (std::int32_t k = part.members_at[t]; k < part.members_at[t + 1]; ++k) free_units_[t] += part.units[part.members[k]];
    rescan(t);
  }
  possible_ &= overfull_ < 0;
  noted_ = 0;
}

// The lowest offset from `offset` on that is aligned, and at which no fixed neighbour is in the way.
std::int64_t Skyline::settle(std::int32_t i, std::int64_t offset) const {
  if (part_.fixed[i] >= 0) return offset;
  offset = align_up(offset, part_.alignment[i]);
  if (!part_.has_fixed) return offset;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int32_t k = part_.neighbours_at[i]; k < part_.neighbours_at[i + 1]; ++k) {
      const std::int32_t j = part_.neighbours[k];
      if (part_.fixed[j] < 0 || part_.fixed[j] >= offset + part_.units[i] || part_.fixed[j] + part_.units[j] <= offset)
        continue;
      offset = align_up(part_.fixed[j] + part_.units[j], part_.alignment[i]);
      moved = true;
    }
  }
  return offset;
}

void Skyline::touch(std::int32_t t) {
  if (is_touched_[t]) return;
  is_touched_[t] = 1;
  touched_.push_back(t);
}

void Skyline::keep_section(std::int32_t t) {
  if (kept_at_[t] == decision_) return;
  kept_at_[t] = decision_;
  note({Change::section, t, count_[t], floor_[t], top_[t]});
}

// Raises the low of buffer number i of the part, which is the lowest offset that it may still have, to `offset`. A decision of
// the search that forces this low has the number `reason` in the buffer's set of reasons, and is added to it; -1: no decision
// is added.
void Skyline::raise(std::int32_t i, std::int64_t offset, std::int32_t reason) {
  const std::int64_t old = low_[i];
  const bool is_new = reason >= 0 && !Levels::has(reasons(i), reason);
  note({is_new ? Change::low_and_reason : Change::low, i, reason, old, 0});
  low_[i] = offset;
  if (is_new) {
    Levels::add(reasons(i), reason);
    ++reason_count_[i];
  }
  for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
    for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last; ++t) {
      if (floor_[t] != old) continue;
      if (count_[t] == 1) {
        touch(t);
      } else if (!is_touched_[t]) {
        keep_section(t);
        --count_[t];
      }
    }
}

void Skyline::rescan(std::int32_t t) {
  std::int64_t floor = kClosed;
  std::int32_t count = 0;
  for (std::int32_t k = part_.members_at[t]; k < part_.members_at[t + 1]; ++k) {
    const std::int64_t low = low_[part_.members[k]];
    if (low < floor) {
      floor = low;
      count = 1;
    } else {
      count += low == floor;
    }
  }
  keep_section(t);
  floor_[t] = floor;
  count_[t] = floor == kClosed ? 0 : count;
  if (floor != kClosed && floor + free_units_[t] > capacity_ && overfull_ < 0) overfull_ = t;
}

bool Skyline::rescan_touched() {
  for (std::int32_t t : touched_) {
    is_touched_[t] = 0;
    if (overfull_ < 0) rescan(t);
  }
  touched_.clear();
  if (overfull_ < 0) return true;
  explain(overfull_);
  overfull_ = -1;
  return false;
}

// Builds a conflict: free members of a section that together do not fit above its floor. Members that the conflict does not
// need are left out, those with the most reasons first. One member must stay, because the floor is where some member is.
void Skyline::explain(std::int32_t t) {
  by_reasons_.clear();
  for (std::int32_t k = part_.members_at[t]; k < part_.members_at[t + 1]; ++k) {
    const std::int32_t i = part_.members[k];
    if (is_placed(i)) continue;
    by_reasons_.emplace_back(-reason_count_[i], i);
  }
  std::sort(by_reasons_.begin(), by_reasons_.end());
  std::fill(conflict_.begin(), conflict_.end(), 0);
  std::int64_t excess = floor_[t] + free_units_[t] - capacity_;
  for (const auto& [count, i] : by_reasons_) {
    if (part_.units[i] < excess && i != by_reasons_.back().second) {
      excess -= part_.units[i];
    } else {
      unite(conflict_.data(), reasons(i));
    }
  }
}

void Skyline::take_sections(std::int32_t i) {
  const std::int64_t end = offset_[i] + part_.units[i];
  for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
    for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last; ++t) {
      keep_section(t);
      top_[t] = end;
      floor_[t] = -1;  // no low has this value, so raise() does not scan the section
      free_units_[t] -= part_.units[i];
    }
}

// Counts member i as a support of neighbour j: adds to rests_ at the sections in which both are alive.
void Skyline::count_at(std::int32_t j, std::int32_t i) {
  std::int32_t a = part_.spans_at[i], b = part_.spans_at[j];
  while (a < part_.spans_at[i + 1] && b < part_.spans_at[j + 1]) {
    const Steps x = part_.spans[a], y = part_.spans[b];
    const std::int32_t first = std::max(x.first, y.first), last = std::min(x.last, y.last);
    if (first <= last) {
      ++rests_[first];
      --rests_[last + 1];
    }
    ++(x.last < y.last ? a : b);
  }
}

bool Skyline::raise_neighbours(std::int32_t i, std::int32_t level) {
  const std::int64_t end = offset_[i] + part_.units[i];
  const std::int32_t own = bit(level);
  for (std::int32_t k = part_.neighbours_at[i]; k < part_.neighbours_at[i + 1]; ++k) {
    const std::int32_t j = part_.neighbours[k];
    if (is_placed(j)) continue;
    if (low_[j] < end) {
      if (part_.fixed[j] >= 0) {
        std::fill(conflict_.begin(), conflict_.end(), 0);
        Levels::add(conflict_.data(), own);
        return false;
      }
      raise(j, settle(j, end), own);
    }
    if (low_[j] == end) count_at(j, i);
  }
  return true;
}

// Sets the floors of the placed member's sections. Where a neighbour now rests on the member, the member's end is the floor;
// elsewhere the section is scanned.
void Skyline::settle_sections(std::int32_t i) {
  const std::int64_t end = offset_[i] + part_.units[i];
  for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k) {
    std::int32_t resting = 0;
    for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last + 1; ++t) {
      resting += rests_[t];
      rests_[t] = 0;
      if (t > part_.spans[k].last) break;
      if (resting > 0) {
        floor_[t] = end;
        count_[t] = resting;
      } else if (free_units_[t] > 0) {
        rescan(t);
      } else {
        floor_[t] = kClosed;
        count_[t] = 0;
      }
    }
  }
}

bool Skyline::put(std::int32_t i, std::int32_t level) {
  offset_[i] = low_[i];
  level_[i] = level;
  low_[i] = kClosed;
  --free_;
  ++decision_;
  note({Change::placed, i, 0, 0, 0});
  take_sections(i);
  if (!raise_neighbours(i, level)) {
    std::fill(rests_.begin(), rests_.end(), 0);
    for (std::int32_t t : touched_) is_touched_[t] = 0;
    touched_.clear();
    return false;
  }
  settle_sections(i);
  return rescan_touched();
}

std::int64_t Skyline::lowest_support(std::int32_t i, std::int64_t floor) const {
  std::int64_t lowest = kClosed;
  for (std::int32_t k = part_.neighbours_at[i]; k < part_.neighbours_at[i + 1]; ++k) {
    const std::int32_t j = part_.neighbours[k];
    if (low_[j] < lowest) lowest = std::min(lowest, low_[j] + part_.units[j]);
  }
  return std::max(lowest, floor + 1);
}

void Skyline::keep_reasons(std::int32_t i) {
  kept_.insert(kept_.end(), reasons(i), reasons(i) + words_);
  note({Change::reasons, i, reason_count_[i], 0, 0});
}

bool Skyline::leave_empty(std::int32_t t, std::int32_t level, bool lift) {
  const std::int64_t floor = floor_[t];
  bool possible = true;
  ++decision_;
  for (std::int32_t k = part_.members_at[t]; k < part_.members_at[t + 1] && possible; ++k) {
    const std::int32_t i = part_.members[k];
    if (low_[i] != floor) continue;
    const std::int64_t offset = settle(i, lift ? lowest_support(i, floor) : floor + 1);
    keep_reasons(i);
    Levels::add(reasons(i), bit(level));
    if (lift) add_reasons_of_neighbours(i, reasons(i));
    reason_count_[i] = 0;
    for (std::int32_t w = 0; w < words_; ++w) reason_count_[i] += std::popcount(reasons(i)[w]);
    if (part_.fixed[i] >= 0 || offset > capacity_ - part_.units[i]) {
      std::copy_n(reasons(i), words_, conflict_.begin());
      possible = false;
    } else {
      raise(i, offset, -1);
    }
  }
  if (possible) return rescan_touched();
  for (std::int32_t s : touched_) is_touched_[s] = 0;
  touched_.clear();
  return false;
}

bool Skyline::is_supported(std::int32_t i) const {
  std::int64_t top = 0;
  for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
    for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last; ++t) top = std::max(top, top_[t]);
  return part_.fixed[i] >= 0 || settle(i, top) == low_[i];
}

void Skyline::add_reasons_of(std::int32_t i, Word* set) const {
  if (is_placed(i))
    Levels::add(set, bit(level_[i]));
  else
    unite(set, reasons(i));
}

void Skyline::add_reasons_of_section(std::int32_t t, Word* set) const {
  for (std::int32_t k = part_.members_at[t]; k < part_.members_at[t + 1]; ++k) add_reasons_of(part_.members[k], set);
}

void Skyline::add_reasons_of_neighbours(std::int32_t i, Word* set) const {
  for (std::int32_t k = part_.neighbours_at[i]; k < part_.neighbours_at[i + 1]; ++k) add_reasons_of(part_.neighbours[k], set);
}

void Skyline::undo_placed(std::int32_t i) {
  low_[i] = offset_[i];
  level_[i] = -1;
  ++free_;
  for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
    for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last; ++t) free_units_[t] += part_.units[i];
}

void Skyline::undo(std::size_t mark) {
  while (noted_ > mark) {
    const Log& log = trail_[--noted_];
    switch (log.change) {
      case Change::low_and_reason:
        Levels::remove(reasons(log.index), log.other);
        --reason_count_[log.index];
        [[fallthrough]];
      case Change::low:
        low_[log.index] = log.old;
        break;
      case Change::section:
        floor_[log.index] = log.old;
        count_[log.index] = log.other;
        top_[log.index] = log.old_top;
        break;
      case Change::placed:
        undo_placed(log.index);
        break;
      case Change::reasons:
        std::copy_n(kept_.end() - words_, words_, reasons(log.index));
        kept_.resize(kept_.size() - static_cast<std::size_t>(words_));
        reason_count_[log.index] = log.other;
        break;
    }
  }
}

}  // namespace tapedeck
