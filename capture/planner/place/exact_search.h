// Exact search for a placement within one capacity.
//
// Canonical form, sections and their sums come from MiniMalloc (Moffitt, ASPLOS 2023). The branching fills niches, as in strip
// packing (Cote, Dell'Amico, Iori 2014). The search chooses a section whose floor is the bottom of a niche, and decides which
// buffer begins at exactly that point of the address x time plane: one of the buffers that fit, or none. So no placement is met
// twice, and the search can take the niche where the fewest buffers fit. A failure names the decisions that caused it, and the
// search returns to the last of these decisions (conflict-directed backjumping, Prosser 1993). So independent parts of an
// instance do not multiply the work.
//
//     offset |     +-----+            the niche between a and b: buffers c or d may begin at its bottom,
//            | a   |     | b          or no buffer does, and the niche stays empty up to the next end
//            +-----+ . . +-----
//              the decision is made at the bottom of the niche
#pragma once

#include <tapedeck/capture/planner/place/exact_skyline.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// A strategy of the search. No strategy wins everywhere, and the best is often faster than the next by orders of magnitude, so
// several strategies race (exact_race.h).
struct ExactStrategy {
  enum class Niche { fewest_choices, lowest, least_slack };  // which niche is filled first
  enum class Taste { size, width, area, load };              // which buffer is tried first: the one with most of this quantity
  Niche niche = Niche::fewest_choices;
  Taste taste = Taste::size;
  bool lift = false;       // the `lift` of Skyline::leave_empty
  std::uint64_t seed = 0;  // 0: no randomness; otherwise the order of buffers is perturbed
};

// One exact search: a strategy at a capacity. Not thread safe.
class ExactSearch {
 public:
  enum class Outcome { found, none, unfinished };

  // A search within `capacity_units`. The part must be searchable, and must outlive the search.
  ExactSearch(const PlacePart& part, std::int64_t capacity_units, const ExactStrategy& strategy);

  // Continues until `most_steps` decisions were tried in all, or until `stop` says so. The outcome `none` is a proof that no
  // placement fits.
  Outcome run(std::int64_t most_steps, const SearchStop& stop = {});

  std::int64_t steps() const { return steps_; }
  // In units; valid after the outcome `found`.
  std::int64_t offset(std::int32_t member) const { return skyline_.offset(member); }

 private:
  static constexpr std::int32_t kNothing = -1;  // the choice that leaves the point empty
  struct Frame {
    std::int32_t section;
    std::size_t first, next;  // its choices are choices_[first ...], up to the first choice of the next frame
    std::size_t mark;
    bool has_floating;  // some buffers fit, but would rest on nothing, and were left out
  };

  void rank(const ExactStrategy& strategy);
  std::int32_t choose_section() const;
  void open();
  void drop_copies(std::size_t first);
  bool decide(std::int32_t level);
  bool return_to_cause();
  bool close();
  Skyline::Word* causes(std::size_t level) { return &causes_[level * static_cast<std::size_t>(skyline_.words())]; }

  const PlacePart& part_;
  Skyline skyline_;
  ExactStrategy::Niche niche_;
  bool lift_;
  std::vector<std::int32_t> rank_;  // by member: the buffer with the lowest rank is tried first
  std::vector<Frame> frames_;
  std::vector<std::int32_t> choices_;
  std::vector<Skyline::Word> causes_;  // by frame: the decisions that caused the failures of its choices so far
  std::vector<std::int64_t> seen_;     // by kind: the value of opened_ when this kind was last among the choices
  std::int64_t opened_ = 0;
  std::int64_t steps_ = 0;
  bool begun_ = false;
};

}  // namespace tapedeck
