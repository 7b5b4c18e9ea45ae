#include <tapedeck/capture/planner/rematerialize/forward_part.h>

#include <algorithm>

namespace tapedeck {

bool is_forward(const Facts& facts, NodeId n) {
  const Origin& origin = facts.graph->nodes[n].origin;
  return origin.phase == Phase::forward && !origin.clone && (facts.runs_later.empty() || !facts.runs_later[n]);
}

bool is_given_up(const Facts& facts, ValueId root) {
  return !facts.given_up.empty() && facts.in_arena(root) && facts.given_up[root] &&
         is_forward(facts, facts.graph->values[root].node);
}

std::string named_result(const Facts& facts, NodeId n) {
  for (ValueId v : facts.makes(n))
    if (facts.in_arena(v) && facts.bytes[v] > 0) return facts.graph->value_name(v);
  return facts.graph->value_name(facts.graph->nodes[n].first_output);
}

std::int64_t bytes_made(const Facts& facts, NodeId n) {
  std::int64_t bytes = 0;
  for (ValueId v : facts.makes(n))
    if (facts.in_arena(v)) bytes += facts.bytes[v];
  return bytes;
}

bool may_run_again(const Facts& facts, NodeId n) {
  return is_forward(facts, n) && facts.can_repeat(n) && bytes_made(facts, n) > 0;
}

bool can_be_had_at(const Facts& facts, NodeId n, NodeId stage) {
  const auto reads = facts.reads(n);
  return std::all_of(reads.begin(), reads.end(),
                     [&](ValueId root) { return facts.in_arena(root) || facts.overwritten[root] >= stage; });
}

std::vector<NodeId> first_later_readers(const Facts& facts) {
  std::vector<NodeId> first(facts.graph->values.size(), Facts::kNever);
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    if (is_forward(facts, n)) continue;
    for (ValueId root : facts.reads(n)) first[root] = std::min(first[root], n);
  }
  return first;
}

namespace {

// A value that a wish gives up is read again only where it is made again.
void honour_wishes_in(const Facts& facts, std::vector<NodeId>* stages) {
  if (facts.given_up.empty()) return;
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    const auto reads = facts.reads(n);
    const auto would_be_kept = [&](ValueId root) {
      return is_given_up(facts, root) && (*stages)[facts.graph->values[root].node] == kNone;
    };
    if (std::any_of(reads.begin(), reads.end(), would_be_kept)) (*stages)[n] = kNone;
  }
}

}  // namespace

std::vector<NodeId> stages_of_one_more_run(const Facts& facts, const std::vector<char>& chosen) {
  std::vector<NodeId> stages(facts.graph->nodes.size(), kNone);
  std::vector<NodeId> wanted = first_later_readers(facts);  // by root: the first stage that reads it again
  for (NodeId n = facts.graph->node_count(); n-- > 0;) {
    if (!chosen[n]) continue;
    NodeId stage = Facts::kNever;
    for (ValueId v : facts.makes(n))
      if (facts.in_arena(v)) stage = std::min(stage, wanted[v]);
    if (stage == Facts::kNever || stage <= n || !can_be_had_at(facts, n, stage)) continue;
    stages[n] = stage;
    for (ValueId root : facts.reads(n)) wanted[root] = std::min(wanted[root], stage);
  }
  honour_wishes_in(facts, &stages);
  return stages;
}

std::set<RepeatedRun> runs_in(const std::vector<NodeId>& stages) {
  std::set<RepeatedRun> runs;
  for (NodeId n = 0; n < static_cast<NodeId>(stages.size()); ++n)
    if (stages[n] != kNone) runs.insert({stages[n], n});
  return runs;
}

namespace {

// By node: the last node before the node's stage that makes or reads its results.
std::vector<NodeId> last_touches_before(const Facts& facts, const std::vector<NodeId>& stages) {
  std::vector<NodeId> last(stages.size());
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    last[n] = n;
    for (ValueId root : facts.reads(n)) {
      const NodeId maker = facts.graph->values[root].node;
      if (maker != kNone && n < stages[maker]) last[maker] = n;
    }
  }
  return last;
}

}  // namespace

Choices choose_one_more_run(const Facts& facts, const Watch& watch, const std::vector<char>& chosen,
                            const std::function<std::string(NodeId node, NodeId stage)>& reason) {
  Choices choices;
  RepeatedRuns runs(facts);
  choices.points.push_back(runs.point_after(0));
  const std::vector<NodeId> stages = stages_of_one_more_run(facts, chosen);
  runs.switch_to(runs_in(stages));
  const std::vector<NodeId> last = last_touches_before(facts, stages);
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    if (stages[n] == kNone || !runs.has_run(stages[n], n)) continue;
    watch.check();
    Decision d;
    d.value = named_result(facts, n);
    d.bytes = bytes_made(facts, n);
    d.span = stages[n] - last[n] - 1;
    d.clones = runs.has_run(n, n) ? 1 : 0;
    d.cost_us = d.clones * facts.cost[n];
    d.live_peak_bytes = facts.external_bytes + runs.live_peak();
    d.reason = reason(n, stages[n]);
    choices.decisions.push_back(std::move(d));
  }
  choices.journal = runs.journal();
  if (!choices.decisions.empty()) choices.points.push_back(runs.point_after(choices.decisions.size()));
  return choices;
}

}  // namespace tapedeck
