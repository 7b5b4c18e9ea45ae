// The user's checkpoint regions. A region's values that only its own forward nodes and later phases read are dropped after
// forward and made again, from what the region reads, in one re-execution just before the first reader of a later phase:
//     %a = exp(%x) [region=0]; %b = mul(%a, %a) [region=0]; ... ; %g = mul(%d, %a) [phase=backward]
// becomes
//     %a = exp(%x) [region=0]; %b = mul(%a, %a) [region=0]; ... ; %9 = exp(%x) [clone, of=%a]; %g = mul(%d, %9)
//     [phase=backward]
// What other forward nodes read (the region's outputs) stays stored, unless a budget needs more: region_outputs.h. Only what is
// needed runs again. A value stays stored as well if it cannot be made again: an effect is in the way, or a state that it reads
// has been overwritten by then.
#include <tapedeck/capture/planner/rematerialize/region_outputs.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/decisions.h>

#include <tapedeck/capture/analysis/phases.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tapedeck {

namespace {

class RegionChooser {
 public:
  RegionChooser(const Facts& facts, const Watch& watch)
      : facts_(facts),
        watch_(watch),
        graph_(*facts.graph),
        run_phases_(run_phases(graph_)),
        schedule_(facts),
        readers_(graph_.values.size()),
        chosen_(graph_.nodes.size(), kNone),
        attempted_(graph_.nodes.size(), 0) {
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      for (ValueId root : facts.reads(n)) readers_[root].push_back(n);
  }

  Choices choose() {
    choices_.points.push_back({0, 0, schedule_.peak().bytes});
    std::map<std::int32_t, std::vector<NodeId>> regions;
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      if (!later_phase(n) && graph_.nodes[n].origin.region >= 0) regions[graph_.nodes[n].origin.region].push_back(n);
    for (const auto& [region, nodes] : regions) recompute(region, nodes);
    choices_.journal = schedule_.journal();
    choices_.points.push_back(
        {static_cast<std::int32_t>(choices_.decisions.size()), choices_.journal.size(), schedule_.peak().bytes});
    if (!choices_.journal.empty()) give_up_outputs();
    return std::move(choices_);
  }

 private:
  void give_up_outputs() {
    const RegionMarks marks = find_marks();
    RegionOutputs(facts_, marks, watch_, &schedule_, &choices_).give_up();
    choices_.journal = schedule_.journal();
  }

  RegionMarks find_marks() const {
    RegionMarks marks{std::vector<char>(graph_.nodes.size()), std::vector<char>(graph_.nodes.size()),
                      std::vector<char>(graph_.values.size())};
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      const std::int32_t region = graph_.nodes[n].origin.region;
      marks.later[n] = later_phase(n);
      marks.inside[n] = !marks.later[n] && region >= 0;
      for (ValueId v : facts_.makes(n)) marks.output[v] = marks.inside[n] && is_region_output(v, region);
    }
    return marks;
  }

  // A node that a wish of the user has put just before its reader, as a clone or not, is not made again for that reader.
  bool later_phase(NodeId n) const {
    const Node& node = graph_.nodes[n];
    const bool was_put = node.origin.clone || node.n_after > 0;
    return node.origin.phase != Phase::forward || (was_put && run_phases_[n] != Phase::forward);
  }

  // Whether v stays stored, because a forward node outside of its checkpoint region reads it.
  bool is_region_output(ValueId v, std::int32_t region) const {
    return std::any_of(readers_[v].begin(), readers_[v].end(),
                       [&](NodeId n) { return !later_phase(n) && graph_.nodes[n].origin.region != region; });
  }

  NodeId first_later_reader(ValueId v) const {
    const auto it = std::find_if(readers_[v].begin(), readers_[v].end(), [&](NodeId n) { return later_phase(n); });
    return it == readers_[v].end() ? kNone : *it;
  }

  std::vector<ValueId> values_to_drop(const std::vector<NodeId>& nodes, std::int32_t region) const {
    std::vector<ValueId> values;
    for (NodeId n : nodes)
      for (ValueId v : facts_.makes(n))
        if (facts_.in_arena(v) && first_later_reader(v) != kNone && !is_region_output(v, region)) values.push_back(v);
    return values;
  }

  void recompute(std::int32_t region, const std::vector<NodeId>& nodes) {
    watch_.check();
    std::vector<ValueId> values = values_to_drop(nodes, region);
    NodeId stage = Facts::kNever;
    for (ValueId v : values) stage = std::min(stage, first_later_reader(v));
    std::vector<NodeId> clones;
    Decision decision;
    for (ValueId v : values) {
      const std::size_t mark = clones.size();
      if (collect(graph_.values[v].node, region, stage, &clones)) {
        if (decision.value.empty()) decision.value = graph_.value_name(v);
        decision.bytes += facts_.bytes[v];
        decision.span = std::max(decision.span, stage - graph_.values[v].node);
      } else {  // v stays stored
        for (std::size_t i = mark; i < clones.size(); ++i) chosen_[clones[i]] = kNone;
        clones.resize(mark);
      }
    }
    if (clones.empty()) return;
    const std::size_t before = schedule_.journal().size();
    std::sort(clones.begin(), clones.end());
    for (NodeId n : clones) schedule_.add_run(stage, n);
    for (std::size_t i = clones.size(); i-- > 0;)  // what was collected for a value that then stayed stored
      schedule_.remove_if_unread(stage, clones[i]);
    for (std::size_t i = clones.size(); i-- > 0;)  // what backward alone reads is made there only
      schedule_.remove_if_unread(clones[i], clones[i]);
    schedule_.refresh();
    count_runs(schedule_, before, facts_, &decision);
    decision.live_peak_bytes = facts_.external_bytes + schedule_.peak().bytes;
    decision.reason =
        fmt::format("checkpoint region {}: {} nodes run again before `{}`", region, decision.clones, graph_.node_text(stage));
    choices_.decisions.push_back(std::move(decision));
  }

  // A node that is being collected, and the place in the list of its reads that comes next.
  struct Begun {
    NodeId node = kNone;
    std::size_t next = 0;
  };

  // Adds to `clones` the nodes that must run at `stage` to have node n's results there; false if n cannot run there. An operand
  // whose maker cannot run there stays stored and is kept for its readers. A region may be one long chain, so the nodes begun
  // are a list.
  bool collect(NodeId n, std::int32_t region, NodeId stage, std::vector<NodeId>* clones) {
    ++attempt_;
    begin(n, region, stage);
    while (!begun_.empty()) {
      const NodeId at = begun_.back().node;
      const auto reads = facts_.reads(at);
      if (begun_.back().next == reads.size()) {
        chosen_[at] = region;
        clones->push_back(at);
        begun_.pop_back();
        continue;
      }
      const ValueId root = reads[begun_.back().next++];
      if (facts_.in_arena(root)) {
        if (must_be_made_again(root, region, stage)) begin(graph_.values[root].node, region, stage);
      } else if (facts_.overwritten[root] < stage) {
        begun_.pop_back();
      }
    }
    return chosen_[n] == region;
  }

  // A node that cannot run is looked at once in an attempt.
  void begin(NodeId n, std::int32_t region, NodeId stage) {
    if (chosen_[n] == region || n >= stage || !facts_.can_repeat(n)) return;
    if (std::exchange(attempted_[n], attempt_) != attempt_) begun_.push_back({n, 0});
  }

  // The values that the region reads, and those of its outputs that are there at `stage`, are kept for it.
  bool must_be_made_again(ValueId root, std::int32_t region, NodeId stage) const {
    const Origin& origin = graph_.nodes[graph_.values[root].node].origin;
    const Schedule::Presence there = schedule_.presence(root, stage);
    if (!there.here && !there.kept && there.previous != kNone && !facts_.may_keep(root, there.previous, stage)) return true;
    if (later_phase(graph_.values[root].node) || origin.region != region) return false;
    return !is_region_output(root, region) || !(there.kept || there.here);
  }

  const Facts& facts_;
  const Watch& watch_;
  const Graph& graph_;
  const std::vector<Phase> run_phases_;  // by node
  Schedule schedule_;
  std::vector<std::vector<NodeId>> readers_;  // by root
  std::vector<std::int32_t> chosen_;          // by node: the region it is run again for
  std::vector<std::int32_t> attempted_;       // by node: the last attempt to collect it
  std::int32_t attempt_ = 0;
  std::vector<Begun> begun_;
  Choices choices_;
};

Choices choose_regions(const Facts& facts, const Watch& watch) {
  const auto& nodes = facts.graph->nodes;
  if (std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.origin.region >= 0; }))
    return RegionChooser(facts, watch).choose();
  const ChoicePoint keep_all{0, 0, peak_without_clones(facts)};
  return {{}, {}, {keep_all, keep_all}};
}

const Strategy regions_strategy = register_strategy({
    .name = "regions",
    .doc = "recomputes the user's checkpoint regions, each once, just before the first reader in backward; for a budget their "
           "outputs too",
    .choose = choose_regions,
    .taken_for = TakenFor::wishes,
});

}  // namespace

}  // namespace tapedeck
