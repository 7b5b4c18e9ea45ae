#include <tapedeck/capture/join_choice.h>

#include <tapedeck/capture/rematerialize/schedule.h>

#include <algorithm>

namespace tapedeck {

namespace {

std::vector<Room> rooms_of(const Facts& facts) {
  std::vector<Room> rooms;
  for (const Home& home : facts.own_homes)
    rooms.push_back(home.where == Where::arena ? Room::arena : home.where == Where::output ? Room::slot : Room::elsewhere);
  return rooms;
}

class JoinChooser {
 public:
  JoinChooser(const Readers& readers, const Facts& plain, int most_trials)
      : readers_(readers), most_trials_(most_trials), plain_(plain), rooms_(rooms_of(plain)), join_facts_{*plain.graph, readers, plain.windows, rooms_} {}

  // The parts; empty if there are none.
  std::vector<Window> choose() {
    const JoinChoice all = find_joins(join_facts_);
    if (std::all_of(all.begin(), all.end(), [](NodeId n) { return n == kNoParts; })) return {};
    choice_.assign(all.size(), kNoParts);
    peak_ = peak_without_clones(plain_);
    if (!takes(all)) try_halves(all, joins_of(all), 0, joins_of(all).size());
    return find_parts(join_facts_, choice_);
  }

 private:
  bool takes(const JoinChoice& trial) {
    ++trials_;
    Facts facts = plain_;
    use_parts(find_parts(join_facts_, trial), readers_, &facts);
    const std::int64_t peak = peak_without_clones(facts);
    if (peak > peak_) return false;
    peak_ = peak;
    choice_ = trial;
    return true;
  }

  static std::vector<NodeId> joins_of(const JoinChoice& all) {
    std::vector<NodeId> joins;
    for (NodeId n = 0; n < static_cast<NodeId>(all.size()); ++n)
      if (all[n] != kNoParts) joins.push_back(n);
    return joins;
  }

  // Halves of what was not taken whole, down to single joins; in the order of nodes, so that a chain grows from its beginning.
  void try_halves(const JoinChoice& all, const std::vector<NodeId>& joins, std::size_t first, std::size_t last) {
    const std::size_t middle = first + (last - first) / 2;
    if (last - first == 1) return try_later(joins[first]);
    try_group(all, joins, first, middle);
    try_group(all, joins, middle, last);
  }

  void try_group(const JoinChoice& all, const std::vector<NodeId>& joins, std::size_t first, std::size_t last) {
    if (trials_ >= most_trials_) return;
    JoinChoice trial = choice_;
    for (std::size_t i = first; i < last; ++i) trial[joins[i]] = all[joins[i]];
    if (!takes(trial)) try_halves(all, joins, first, last);
  }

  // A join of which not all operands may lie in place: those that are made later.
  void try_later(NodeId n) {
    for (NodeId since : {middle_maker(n), last_maker(n)}) {
      if (trials_ >= most_trials_) return;
      JoinChoice trial = choice_;
      trial[n] = since;
      if (takes(trial)) return;
    }
  }

  std::vector<NodeId> makers(NodeId n) const {
    std::vector<NodeId> nodes;
    for (ValueId v : plain_.graph->inputs(plain_.graph->nodes[n])) nodes.push_back(plain_.graph->values[plain_.windows[v].viewed].node);
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }
  NodeId middle_maker(NodeId n) const { return makers(n)[makers(n).size() / 2]; }
  NodeId last_maker(NodeId n) const { return makers(n).back(); }

  const Readers& readers_;
  const int most_trials_;
  const Facts& plain_;
  const std::vector<Room> rooms_;
  const JoinFacts join_facts_;
  JoinChoice choice_;
  std::int64_t peak_ = 0;
  int trials_ = 0;
};

}  // namespace

bool may_share_parts(const Facts& facts) {
  const auto& nodes = facts.graph->nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->part != nullptr; });
}

void share_parts(const Readers& readers, Facts* facts, int most_trials) {
  const std::vector<Window> parts = JoinChooser(readers, *facts, most_trials).choose();
  if (!parts.empty()) use_parts(parts, readers, facts);
}

}  // namespace tapedeck
