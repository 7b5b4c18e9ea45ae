// Tries choices of parts by the peak of live bytes: first all joins; if the peak grows, halves of the joins in turn, down to
// single joins; of a single join then the operands from the middle on, then the last operand. A choice stays if the peak does
// not grow.
#include <tapedeck/capture/planner/joins/join_choice.h>

#include <tapedeck/capture/planner/schedules/schedule.h>

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
      : readers_(readers),
        most_trials_(most_trials),
        plain_(plain),
        rooms_(rooms_of(plain)),
        join_facts_{*plain.graph, readers, plain.windows, rooms_},
        all_(join_all(join_facts_)),
        joins_(joins_of(all_)),
        choice_(all_.size(), kNone),
        peak_(peak_without_clones(plain)) {}

  // The parts; empty if there are none.
  std::vector<Window> choose(const PartChoice& first) {
    if (joins_.empty()) return {};
    if (!first.empty()) takes(first);
    if (!takes(all_)) try_halves(0, joins_.size());
    return find_parts(join_facts_, choice_);
  }

 private:
  bool takes(const PartChoice& trial) {
    ++trials_;
    Facts facts = plain_;
    use_parts(find_parts(join_facts_, trial), readers_, &facts);
    const std::int64_t peak = peak_without_clones(facts);
    if (peak > peak_) return false;
    peak_ = peak;
    choice_ = trial;
    return true;
  }

  // What is joined, in the order of nodes.
  static std::vector<ValueId> joins_of(const PartChoice& choice) {
    std::vector<ValueId> wholes;
    for (ValueId whole : choice)
      if (whole != kNone) wholes.push_back(whole);
    std::sort(wholes.begin(), wholes.end());
    wholes.erase(std::unique(wholes.begin(), wholes.end()), wholes.end());
    return wholes;
  }

  NodeId maker(ValueId v) const { return plain_.graph->values[v].node; }

  // Those parts of a join that are made by node `since` or later.
  void add_parts(ValueId whole, NodeId since, PartChoice* trial) const {
    for (ValueId operand : plain_.graph->inputs(plain_.graph->nodes[maker(whole)])) {
      const ValueId v = plain_.windows[operand].viewed;
      if (all_[v] == whole && maker(v) >= since) (*trial)[v] = whole;
    }
  }

  // Halves of what was not taken whole, down to single joins; in the order of nodes, so that a chain grows from its beginning.
  void try_halves(std::size_t first, std::size_t last) {
    const std::size_t middle = first + (last - first) / 2;
    if (last - first == 1) return try_later(joins_[first]);
    try_group(first, middle);
    try_group(middle, last);
  }

  void try_group(std::size_t first, std::size_t last) {
    if (trials_ >= most_trials_) return;
    PartChoice trial = choice_;
    for (std::size_t i = first; i < last; ++i) add_parts(joins_[i], 0, &trial);
    if (!takes(trial)) try_halves(first, last);
  }

  // A join of which not all operands may lie in place: those that are made later.
  void try_later(ValueId whole) {
    const std::vector<NodeId> all = makers(whole);
    for (NodeId since : {all[all.size() / 2], all.back()}) {
      if (trials_ >= most_trials_) return;
      PartChoice trial = choice_;
      add_parts(whole, since, &trial);
      if (takes(trial)) return;
    }
  }

  std::vector<NodeId> makers(ValueId whole) const {
    std::vector<NodeId> nodes;
    for (ValueId v : plain_.graph->inputs(plain_.graph->nodes[maker(whole)])) nodes.push_back(maker(plain_.windows[v].viewed));
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  const Readers& readers_;
  const int most_trials_;
  const Facts& plain_;
  const std::vector<Room> rooms_;
  const JoinFacts join_facts_;
  const PartChoice all_;
  const std::vector<ValueId> joins_;
  PartChoice choice_;
  std::int64_t peak_ = 0;
  int trials_ = 0;
};

}  // namespace

bool may_share_parts(const Facts& facts) {
  const auto& nodes = facts.graph->nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->part != nullptr; });
}

void share_parts(const Readers& readers, Facts* facts, int most_trials, const PartChoice& first) {
  const std::vector<Window> parts = JoinChooser(readers, *facts, most_trials).choose(first);
  if (!parts.empty()) use_parts(parts, readers, facts);
}

std::vector<PartPlace> part_places(const Readers& readers, const Facts& plain) {
  const std::vector<Room> rooms = rooms_of(plain);
  return find_part_places({*plain.graph, readers, plain.windows, rooms});
}

Facts with_chosen(const Readers& readers, const Facts& plain, const PartChoice& choice) {
  const std::vector<Room> rooms = rooms_of(plain);
  Facts facts = plain;
  use_parts(find_parts({*plain.graph, readers, plain.windows, rooms}, choice), readers, &facts);
  return facts;
}

}  // namespace tapedeck
