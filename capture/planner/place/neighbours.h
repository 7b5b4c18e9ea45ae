// For every buffer, the list of buffers that are alive at the same time.
#pragma once

#include <tapedeck/capture/planner/place/place_problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// The lists for all buffers of a problem. of(i) is the list of buffer i. 4 bytes per entry; each pair has two entries.
class Neighbours {
 public:
  static constexpr std::size_t kMostPairs = std::size_t{1} << 26;

  struct List {
    const std::int32_t *first, *last;
    const std::int32_t* begin() const { return first; }
    const std::int32_t* end() const { return last; }
    std::size_t size() const { return static_cast<std::size_t>(last - first); }
  };

  explicit Neighbours(const PlaceProblem& p);  // O(pairs); incomplete beyond `kMostPairs`
  bool complete() const { return complete_; }
  std::size_t pairs() const { return all_.size(); }
  List of(std::int32_t i) const { return {all_.data() + from_[i], all_.data() + from_[i + 1]}; }

 private:
  std::vector<std::size_t> from_;
  std::vector<std::int32_t> all_;
  bool complete_ = true;
};

}  // namespace tapedeck
