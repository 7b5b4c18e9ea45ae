// Exact search for a placement within one capacity.
//
// From MiniMalloc (Moffitt, ASPLOS 2023) come solutions in canonical form, sections and their sums. The way of branching is
// that of filling niches in strip packing (Cote, Dell'Amico, Iori 2014): some section whose floor is the bottom of a niche is
// chosen, and what starts at just that point of the address x time plane is decided: one of the buffers that fit, or nothing.
// So no placement is met twice, and any niche may come next, wherever fewest buffers fit. A failure names the decisions it came
// from, and the search returns to the last of these (conflict-directed backjumping, Prosser 1993): parts of the instance that
// have nothing to do with each other do not multiply.
#pragma once

#include <tapedeck/capture/planner/place/exact_skyline.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// None wins everywhere, and the best is often faster than the next by orders of magnitude: they are raced (exact_race.h).
struct ExactStrategy {
  enum class Niche { fewest_choices, lowest, least_slack };  // which is filled first
  enum class Taste { size, width, area, load };              // which buffer is tried first: the one with most of this
  Niche niche = Niche::fewest_choices;
  Taste taste = Taste::size;
  bool lift = false;       // Skyline::leave_empty
  std::uint64_t seed = 0;  // other than 0: tastes are perturbed
};

class ExactSearch {
 public:
  enum class Outcome { found, none, unfinished };

  // The part must be searchable and outlive it.
  ExactSearch(const PlacePart& part, std::int64_t capacity_units, const ExactStrategy& strategy);

  // Goes on until so many decisions were tried in all, or it is to stop. `none` is a proof.
  Outcome run(std::int64_t most_steps, const SearchStop& stop = {});

  std::int64_t steps() const { return steps_; }
  std::int64_t offset(std::int32_t member) const { return skyline_.offset(member); }  // once found, in units

 private:
  static constexpr std::int32_t kNothing = -1;  // as a choice: the point stays empty
  struct Frame {
    std::int32_t section;
    std::size_t first, next;  // of its choices: they end where those of the next frame begin
    std::size_t mark;
    bool has_floating;  // some that fit have nothing to rest on, and were left out
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
  std::vector<std::int32_t> rank_;  // by member: what is tried first has the lowest
  std::vector<Frame> frames_;
  std::vector<std::int32_t> choices_;
  std::vector<Skyline::Word> causes_;  // by frame: of the failures of its choices so far
  std::vector<std::int64_t> seen_;     // by kind: when it last was among the choices
  std::int64_t opened_ = 0;
  std::int64_t steps_ = 0;
  bool begun_ = false;
};

}  // namespace tapedeck
