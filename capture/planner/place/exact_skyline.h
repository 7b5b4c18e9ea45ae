// The state of the exact search: the buffers placed so far, bottom up, and for every other buffer its lowest possible offset,
// with the decisions that force this offset.
#pragma once

#include <tapedeck/capture/planner/place/split_problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// A set of decisions, by level of the search. Levels beyond the last bit share that bit, so a set may name too many decisions,
// never too few.
class Levels {
 public:
  using Word = std::uint64_t;
  static void add(Word* set, std::int32_t level) { set[level >> 6] |= Word{1} << (level & 63); }
  static void remove(Word* set, std::int32_t level) { set[level >> 6] &= ~(Word{1} << (level & 63)); }
  static bool has(const Word* set, std::int32_t level) { return set[level >> 6] >> (level & 63) & 1; }
};

// Offsets are in units of the part. `low` of a free (unplaced) member is its lowest possible offset. The floor of a section is
// the least low of its free members, so no further buffer lies below the floor. A buffer is only placed where its low equals
// the floor of all its sections; then everything below it is decided. Invariant: floor + free units of every section <=
// capacity, or the last call has returned false.
class Skyline {
 public:
  using Word = Levels::Word;
  // The floor of a section without free members, and the low of a placed member.
  static constexpr std::int64_t kClosed = std::int64_t{1} << 62;

  // The part must outlive it.
  Skyline(const PlacePart& part, std::int64_t capacity);

  bool is_possible() const { return possible_; }  // false: some section holds more than the capacity
  std::int32_t free_count() const { return free_; }

  std::int64_t floor(std::int32_t section) const { return floor_[section]; }
  std::int32_t count(std::int32_t section) const { return count_[section]; }  // the free members that could lie on the floor
  std::int64_t slack(std::int32_t section) const { return capacity_ - floor_[section] - free_units_[section]; }
  std::int64_t low(std::int32_t member) const { return low_[member]; }
  std::int64_t offset(std::int32_t member) const { return offset_[member]; }
  bool is_placed(std::int32_t member) const { return level_[member] >= 0; }
  bool is_supported(std::int32_t member) const;  // true if another buffer ends at its low, or if its low is the ground

  // The two decisions of a level. put() places a member at its low. leave_empty() decides that no buffer lies on the floor of a
  // section, and raises all members that could. With `lift`, a raised member goes to the lowest end of a buffer on which it may
  // still rest, because in some solution every buffer rests on another. Without `lift` it goes up by one unit, which needs
  // fewer reasons. Both return false if the decision is impossible; conflict() then names decisions, at least one of which must
  // change.
  bool put(std::int32_t member, std::int32_t level);
  bool leave_empty(std::int32_t section, std::int32_t level, bool lift);

  std::size_t mark() const { return noted_; }
  void undo(std::size_t mark);

  Word* conflict() { return conflict_.data(); }
  std::int32_t words() const { return words_; }
  std::int32_t bit(std::int32_t level) const { return level < last_bit_ ? level : last_bit_; }
  bool is_own_bit(std::int32_t level) const { return level < last_bit_; }
  void unite(Word* set, const Word* other) const {
    for (std::int32_t w = 0; w < words_; ++w) set[w] |= other[w];
  }

  // Adds the reasons for the state of a section: the levels that placed its members, and the reasons why its free members lie
  // no lower.
  void add_reasons_of_section(std::int32_t section, Word* set) const;
  void add_reasons_of_neighbours(std::int32_t member, Word* set) const;

 private:
  enum class Change : std::int32_t { low, low_and_reason, reasons, section, placed };
  struct Log {
    Change change;
    std::int32_t index, other;  // `other`: the level of a reason, or the count of a section or of reasons
    std::int64_t old, old_top;
  };

  // Called for every section and every member that changes.
  void note(const Log& log) {
    if (noted_ == trail_.size()) trail_.resize(2 * noted_ + 64);
    trail_[noted_++] = log;
  }
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
  std::vector<std::int32_t> level_;                     // by member: the level of the decision that placed it; -1: free
  std::vector<std::int64_t> floor_, free_units_, top_;  // by section; top_: the end of the highest placed member
  std::vector<std::int32_t> count_;                     // by section: the free members that could lie on the floor
  std::vector<Word> reasons_;                           // by member: the decisions that force its low
  std::vector<std::int32_t> reason_count_;              // by member: the number of these decisions

  std::vector<Log> trail_;
  std::size_t noted_ = 0;              // of trail_; what lies behind is scratch
  std::vector<Word> kept_;             // the sets of reasons that were overwritten, for undo()
  std::vector<std::int64_t> kept_at_;  // by section: the decision whose trail already holds the old state of the section
  std::int64_t decision_ = 0;
  std::vector<std::int32_t> touched_;  // the sections to be scanned again
  std::vector<char> is_touched_;
  std::vector<std::int32_t> rests_;  // by section: changes of the number of members that rest on the member being placed
  std::int32_t overfull_ = -1;       // the first section found to hold more than the capacity
  std::vector<Word> conflict_;
  std::vector<std::pair<std::int32_t, std::int32_t>> by_reasons_;
};

}  // namespace tapedeck
