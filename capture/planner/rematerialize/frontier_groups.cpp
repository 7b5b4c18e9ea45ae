#include <tapedeck/capture/planner/rematerialize/frontier_groups.h>

#include <deque>
#include <utility>

namespace tapedeck {

namespace {

class FrontierGroups {
 public:
  FrontierGroups(const Facts& facts, const std::vector<NodeId>& later_readers, std::vector<char>* mirrored)
      : facts_(facts),
        later_readers_(later_readers),
        mirrored_(*mirrored),
        readers_(facts.graph->values.size()),
        waits_(facts.graph->nodes.size(), 0),
        left_(facts.graph->values.size(), 0),
        in_frontier_(facts.graph->values.size(), 0),
        one_reader_(facts.graph->values.size(), kNone),
        parent_(facts.graph->nodes.size(), kNone),
        groups_(facts.graph->nodes.size()) {
    for (NodeId n = 0; n < facts.graph->node_count(); ++n)
      if (mirrored_[n]) add_readers(n);
  }

  void settle() {
    for (NodeId n = 0; n < facts_.graph->node_count(); ++n)
      if (mirrored_[n] && waits_[n] == 0) enter(n);
    while (!changed_.empty()) {
      const NodeId group = find(changed_.front());
      changed_.pop_front();
      if (mirrored_[group] && groups_[group].released >= groups_[group].allocated)
        store(std::exchange(groups_[group].nodes, {}));
    }
  }

 private:
  struct Group {
    std::vector<NodeId> nodes;
    std::int64_t allocated = 0, released = 0;
  };

  void add_readers(NodeId n) {
    for (ValueId root : facts_.reads(n)) {
      if (!facts_.in_arena(root)) continue;
      readers_[root].push_back(n);
      ++left_[root];
      if (mirrored_[facts_.graph->values[root].node]) ++waits_[n];
    }
  }

  NodeId find(NodeId n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }

  NodeId unite(NodeId a, NodeId b) {
    a = find(a);
    b = find(b);
    if (a == b) return a;
    if (groups_[a].nodes.size() < groups_[b].nodes.size()) std::swap(a, b);
    parent_[b] = a;
    groups_[a].allocated += groups_[b].allocated;
    groups_[a].released += groups_[b].released;
    groups_[a].nodes.insert(groups_[a].nodes.end(), groups_[b].nodes.begin(), groups_[b].nodes.end());
    groups_[b].nodes.clear();
    return a;
  }

  bool is_read_later(ValueId v) const { return later_readers_[v] != Facts::kNever; }

  // All that the node reads is stored now.
  void enter(NodeId n) {
    parent_[n] = n;
    groups_[n].nodes = {n};
    for (ValueId v : facts_.makes(n))
      if (facts_.in_arena(v) && (is_read_later(v) || left_[v] > 0)) groups_[n].allocated += facts_.bytes[v];
    for (ValueId root : facts_.reads(n)) {
      if (!facts_.in_arena(root)) continue;
      const NodeId group = one_reader_[root] == kNone ? find(n) : unite(n, one_reader_[root]);
      one_reader_[root] = n;
      if (++in_frontier_[root] == left_[root] && !is_read_later(root)) groups_[group].released += facts_.bytes[root];
    }
    changed_.push_back(n);
  }

  // The results of these nodes are stored: they are not computed again, and nodes that waited for them may enter the frontier.
  void store(const std::vector<NodeId>& nodes) {
    for (NodeId n : nodes) {
      mirrored_[n] = 0;
      for (ValueId root : facts_.reads(n)) {
        if (!facts_.in_arena(root)) continue;
        --left_[root];
        --in_frontier_[root];
        one_reader_[root] = kNone;
      }
    }
    for (NodeId n : nodes)
      for (ValueId v : facts_.makes(n)) release_readers(v);
  }

  void release_readers(ValueId v) {
    for (NodeId reader : readers_[v])
      if (mirrored_[reader] && --waits_[reader] == 0) enter(reader);
  }

  const Facts& facts_;
  const std::vector<NodeId>& later_readers_;
  std::vector<char>& mirrored_;
  std::vector<std::vector<NodeId>> readers_;  // by root: the mirrored nodes that read it
  std::vector<std::int32_t> waits_;           // by node: operands that are not stored
  std::vector<std::int32_t> left_;            // by root: mirrored readers
  std::vector<std::int32_t> in_frontier_;     // by root: of these, the ones in the frontier
  std::vector<NodeId> one_reader_;            // by root: a reader in the frontier, whose group is that of all of them
  std::vector<NodeId> parent_;                // by node in the frontier: towards the node that stands for its group
  std::vector<Group> groups_;                 // by that node
  std::deque<NodeId> changed_;                // nodes whose group is to be judged
};

}  // namespace

void store_groups_without_gain(const Facts& facts, const std::vector<NodeId>& later_readers, std::vector<char>* mirrored) {
  FrontierGroups(facts, later_readers, mirrored).settle();
}

}  // namespace tapedeck
