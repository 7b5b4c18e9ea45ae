// The state of the exact search: buffers placed bottom up, and for all others how low they can still lie, with the decisions
// that say so.
#pragma once

#include <tapedeck/capture/planner/place/split_problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// A set of decisions, by level. Levels beyond the last bit share it, so a set may name too many, never too few.
class Levels {
 public:
  using Word = std::uint64_t;
  static void add(Word* set, std::int32_t level) { set[level >> 6] |= Word{1} << (level & 63); }
  static void remove(Word* set, std::int32_t level) { set[level >> 6] &= ~(Word{1} << (level & 63)); }
  static bool has(const Word* set, std::int32_t level) { return set[level >> 6] >> (level & 63) & 1; }
};

// Offsets are in the units of the part. Each section has a floor: the least low of its free (unplaced) members, so nothing more
// will lie below it. A buffer is only put where the floor of all its sections is its low; then what lies below it is decided.
// Invariant: floor + free units of every section <= capacity, or the last call has returned false.
class Skyline {
 public:
  using Word = Levels::Word;
  static constexpr std::int64_t kClosed = std::int64_t{1}
                                          << 62;  // the floor of a section without free members, the low of a placed buffer

  // The part must outlive it.
  Skyline(const PlacePart& part, std::int64_t capacity);

  bool is_possible() const { return possible_; }  // false: some section holds more than the capacity
  std::int32_t free_count() const { return free_; }

  std::int64_t floor(std::int32_t section) const { return floor_[section]; }
  std::int32_t count(std::int32_t section) const { return count_[section]; }  // free members that could lie on the floor
  std::int64_t slack(std::int32_t section) const { return capacity_ - floor_[section] - free_units_[section]; }
  std::int64_t low(std::int32_t member) const { return low_[member]; }
  std::int64_t offset(std::int32_t member) const { return offset_[member]; }
  bool is_placed(std::int32_t member) const { return level_[member] >= 0; }
  bool is_supported(std::int32_t member) const;  // something ends at its low, or that is the ground

  // The decisions of `level`: a member lies at its low; or, of those that could, none lies on the floor of a section. With
  // `lift`, the latter are raised to the lowest end of what they may yet rest on (in some solution all rest on something), else
  // by one unit: that needs fewer reasons. False: it cannot be; conflict() names decisions of which at least one must be
  // another.
  bool put(std::int32_t member, std::int32_t level);
  bool leave_empty(std::int32_t section, std::int32_t level, bool lift);

  std::size_t mark() const { return trail_.size(); }
  void undo(std::size_t mark);

  Word* conflict() { return conflict_.data(); }
  std::int32_t words() const { return words_; }
  std::int32_t bit(std::int32_t level) const { return level < last_bit_ ? level : last_bit_; }
  bool is_own_bit(std::int32_t level) const { return level < last_bit_; }
  void unite(Word* set, const Word* other) const {
    for (std::int32_t w = 0; w < words_; ++w) set[w] |= other[w];
  }

  // Adds why a section is as it is: where its placed members lie, why the free ones are not lower.
  void add_reasons_of_section(std::int32_t section, Word* set) const;
  void add_reasons_of_neighbours(std::int32_t member, Word* set) const;

 private:
  enum class Change : std::int32_t { low, low_and_reason, reasons, section, placed };
  struct Log {
    Change change;
    std::int32_t index, other;  // other: the level of a reason, the count of a section or of reasons
    std::int64_t old, old_top;
  };

  std::int64_t settle(std::int32_t member, std::int64_t offset) const;
  void raise(std::int32_t member, std::int64_t offset, std::int32_t reason);
  void keep_section(std::int32_t section);
  void touch(std::int32_t section);
  void take_sections(std::int32_t member);
  bool raise_neighbours(std::int32_t member, std::int32_t level);
  void count_at(std::int32_t neighbour, std::int32_t member);
  void settle_sections(std::int32_t member);
  void rescan(std::int32_t section);
  bool rescan_touched();
  void explain(std::int32_t section);
  std::int64_t lowest_support(std::int32_t member, std::int64_t floor) const;
  void undo_placed(std::int32_t member);
  void keep_reasons(std::int32_t member);
  void add_reasons_of(std::int32_t member, Word* set) const;

  const Word* reasons(std::int32_t member) const {
    return &reasons_[static_cast<std::size_t>(member) * static_cast<std::size_t>(words_)];
  }
  Word* reasons(std::int32_t member) { return &reasons_[static_cast<std::size_t>(member) * static_cast<std::size_t>(words_)]; }

  const PlacePart& part_;
  std::int64_t capacity_;
  bool possible_ = true;
  std::int32_t free_, words_, last_bit_;

  std::vector<std::int64_t> low_, offset_;              // by member
  std::vector<std::int32_t> level_;                     // by member: of the decision that placed it, -1: free
  std::vector<std::int64_t> floor_, free_units_, top_;  // by section; top: end of what is placed
  std::vector<std::int32_t> count_;                     // by section
  std::vector<Word> reasons_;                           // by member: the decisions that make its low what it is
  std::vector<std::int32_t> reason_count_;              // by member: of these

  std::vector<Log> trail_;
  std::vector<Word> kept_;             // sets that were overwritten
  std::vector<std::int64_t> kept_at_;  // by section: the decision since which it is in the trail
  std::int64_t decision_ = 0;
  std::vector<std::int32_t> touched_;  // sections to be looked at again
  std::vector<char> is_touched_;
  std::vector<std::int32_t> rests_;  // by section of what is being put: changes of the number of those that rest on it
  std::int32_t overfull_ = -1;       // the first section found to hold too much
  std::vector<Word> conflict_;
  std::vector<std::pair<std::int32_t, std::int32_t>> by_reasons_;
};

}  // namespace tapedeck
