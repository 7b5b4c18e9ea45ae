// Bytes by stage, with sums added over ranges and maxima asked over ranges, each in O(log stages): a segment tree whose inner
// nodes hold what was added to all of their stages, and the maximum below them.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

class LiveTree {
 public:
  explicit LiveTree(const std::vector<std::int64_t>& bytes);

  void add(NodeId first, NodeId last, std::int64_t bytes);  // to stages first..last; nothing if there are none
  void add(NodeId stage, std::int64_t bytes);
  std::int64_t most(NodeId first, NodeId last) const;  // over stages first..last; 0 if there are none
  std::int64_t at(NodeId stage) const;
  void read(std::vector<std::int64_t>* by_stage) const;  // of all stages, in O(stages); REQUIRES: one entry for each stage

  struct Peak {
    std::int64_t bytes = 0;
    NodeId stage = 0;         // the first where they are
    std::int32_t stages = 0;  // how many stages have them
  };
  Peak peak() const;

 private:
  struct Entry {
    std::int64_t most = 0;  // of all stages below, what was added to the entry itself counted
    std::int64_t added = 0;
    std::int32_t stages = 0;  // where `most` is reached
  };
  bool combine(std::size_t i);  // whether the entry changes

  std::size_t leaves_ = 1;
  std::vector<Entry> entries_;  // entry 1 is the root, leaves from leaves_ on
};

}  // namespace tapedeck
