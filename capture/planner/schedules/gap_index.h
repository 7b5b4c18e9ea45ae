// Finds the gaps that lie across one stage, without a look at all others: in a large graph there are a hundred thousand gaps,
// and a few hundred lie across the peak. The structure is a priority search tree (McCreight, 1985): a tree over the stages at
// which gaps begin, whose entries hold the latest end of a gap that begins below them.
//
//     gaps 0-7, 1-3, 2-5           latest end       7          across stage 4: 3 is no later than 4, so gap 1-3 is
//                                                7     5       never looked at
//                                  begin         0  1  2  3
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapedeck {

class GapIndex {
 public:
  explicit GapIndex(NodeId stages);

  // A gap is known by a number of the caller's. O(log n) and the gaps that begin in the same stage.
  void add(std::int32_t gap, NodeId from, NodeId to);
  void remove(std::int32_t gap, NodeId from);  // REQUIRES: it was added with this `from`.

  // Calls visit(gap) for all gaps with from <= stage < to, in ascending order of `from`. O(log n) for each at most.
  template <class Visit>
  void each_across(NodeId stage, Visit&& visit) const {
    std::size_t waiting[kMostLevels];  // entries whose gaps are not looked at yet, the leftmost last
    std::size_t count = 0;
    waiting[count++] = 1;
    while (count > 0) {
      const std::size_t i = waiting[--count];
      if (latest_[i] <= stage || first_below(i) > static_cast<std::size_t>(stage)) continue;
      if (i < leaves_) {
        waiting[count++] = 2 * i + 1;
        waiting[count++] = 2 * i;
        continue;
      }
      for (const Begun& gap : begun_[i - leaves_])
        if (gap.to > stage) visit(gap.number);
    }
  }

 private:
  struct Begun {
    std::int32_t number;
    NodeId to;
  };
  static constexpr std::size_t kMostLevels = 72;  // one entry waits on each level, and two on the last

  // The first stage below entry i.
  std::size_t first_below(std::size_t i) const { return (i << (std::bit_width(leaves_) - std::bit_width(i))) - leaves_; }
  void update_above(NodeId from);

  std::size_t leaves_ = 1;
  std::vector<NodeId> latest_;             // by entry of the tree, the root first: the latest end of a gap
  std::vector<std::vector<Begun>> begun_;  // by stage: the gaps that begin there
};

}  // namespace tapedeck
