// Keeps the schedule and its live bytes up to date. A touch is a stage in which a value is read or made; a gap is the stretch
// between two touches over which the value is kept. Adding a run splits a gap:
//
//     stage    0 makes %h      3 reads %h                    7 reads %h
//     before      |-----gap-----|-------------gap-------------|
//     after       |-----gap-----|                     stage 7 makes %h again, and the gap is gone from the live bytes
//
// Live bytes of a stage are the gaps across it (live_tree.h) and the bytes that its own runs see (measure_local).
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <tapedeck/capture/analysis/takeovers.h>

#include <algorithm>

namespace tapedeck {

std::vector<char> passing_windows(const Facts& facts) {
  const Graph& graph = *facts.graph;
  std::vector<char> passing(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes)
    for (ValueId v : graph.inputs(node))
      if (const NodeId n = graph.values[v].node; n != kNone) passing[n] = facts.is_window(n) && graph.nodes[n].n_after == 0;
  for (const Node& node : graph.nodes)
    for (ValueId v : graph.after(node))
      if (const NodeId n = graph.values[v].node; n != kNone) passing[n] = 0;
  return passing;
}

namespace {

// By node: may it run in another stage instead of its own? Its results must all lie in the arena, because results elsewhere
// have one place. A node with order edges, to it or from it, stays where it is.
std::vector<char> movable_nodes(const Facts& facts) {
  const Graph& graph = *facts.graph;
  std::vector<char> movable(graph.nodes.size(), 0);
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const auto makes = facts.makes(n);
    const bool all_in_arena = std::all_of(makes.begin(), makes.end(), [&](ValueId v) { return facts.in_arena(v); });
    movable[n] = facts.can_repeat(n) && !makes.empty() && all_in_arena && graph.nodes[n].n_after == 0;
  }
  for (const Node& node : graph.nodes)
    for (ValueId v : graph.after(node))
      if (const NodeId n = graph.values[v].node; n != kNone) movable[n] = 0;
  return movable;
}

}  // namespace

Schedule::Schedule(const Facts& facts)
    : facts_(facts),
      passes_on_(passing_windows(facts)),
      may_leave_(movable_nodes(facts)),
      runs_(facts.graph->nodes.size()),
      changed_(facts.graph->nodes.size() / 64 + 1, 0),
      touches_(facts.graph->values.size()),
      live_(std::vector<std::int64_t>(facts.graph->nodes.size(), 0)),
      local_(facts.graph->nodes.size(), 0),
      alone_(facts.workspace),
      is_stale_(facts.graph->nodes.size(), Stale::no),
      spans_(facts.graph->values.size()),
      stamp_(facts.graph->values.size(), 0) {
  const NodeId n_nodes = facts.graph->node_count();
  for (NodeId n = 0; n < n_nodes; ++n) {
    runs_[n].push_back(n);
    for (ValueId root : reads(n)) {
      if (!facts.in_arena(root)) continue;
      touches_[root].push_back({n, 1, false, kNone});
      alone_[n] += facts.bytes[root];
    }
    for (ValueId v : facts.makes(n)) {
      if (!facts.in_arena(v)) continue;
      touches_[v].push_back({n, 0, true, kNone});
      alone_[n] += facts.bytes[v];
    }
    mark(n, Stale::bytes_changed);
  }
  for (ValueId v = 0; v < facts.graph->value_count(); ++v)
    for (std::size_t i = 1; i < touches_[v].size(); ++i)
      if (open_gap(v, i)) live_.add(touches_[v][i - 1].stage + 1, touches_[v][i].stage - 1, facts.bytes[v]);
  refresh();
}

// ---- changes ----

void Schedule::add_run(NodeId stage, NodeId node) {
  journal_.push_back({stage, node, true});
  apply(journal_.back());
}

void Schedule::remove_run(NodeId stage, NodeId node) {
  journal_.push_back({stage, node, false});
  apply(journal_.back());
}

void Schedule::undo_to(std::size_t journal_size) {
  while (journal_.size() > journal_size) {
    Step step = journal_.back();
    journal_.pop_back();
    step.added = !step.added;
    apply(step);
  }
}

void Schedule::apply(const Step& step) {
  std::vector<NodeId>& runs = runs_[step.stage];
  const auto at = std::lower_bound(runs.begin(), runs.end(), step.node);
  if (step.added)
    runs.insert(at, step.node);
  else
    runs.erase(at);
  note_changed(step.stage);
  n_clones_ += step.added ? 1 : -1;
  const int sign = step.added ? 1 : -1;
  for (ValueId root : reads(step.node))
    if (facts_.in_arena(root)) change_touch(root, step.stage, sign, 0);
  for (ValueId v : facts_.makes(step.node))
    if (facts_.in_arena(v)) change_touch(v, step.stage, 0, sign);
  mark(step.stage, Stale::bytes_changed);
}

void Schedule::note_changed(NodeId stage) {
  const std::uint64_t bit = std::uint64_t{1} << (stage % 64);
  std::uint64_t& word = changed_[static_cast<std::size_t>(stage) / 64];
  const bool runs_itself_alone = runs_[stage].size() == 1 && runs_[stage].front() == stage;
  word = runs_itself_alone ? word & ~bit : word | bit;
}

bool Schedule::has_run(NodeId stage, NodeId node) const {
  return std::binary_search(runs_[stage].begin(), runs_[stage].end(), node);
}

bool Schedule::runs_before(NodeId stage, NodeId node) const {
  if (node == stage) return false;
  for (ValueId v : facts_.makes(node))
    if (facts_.in_arena(v)) return made_in(v, stage - 1) != kNone;
  return true;  // only nodes with results in the arena leave their own stage
}

bool Schedule::waits(ValueId root, NodeId stage) const {
  const auto& touches = touches_[root];
  const std::size_t i = find_touch(root, stage);
  return i < touches.size() && touches[i].stage == stage && touches[i].made && touches[i].readers == 0;
}

bool Schedule::is_unread(NodeId stage, NodeId node) const {
  for (ValueId v : facts_.makes(node)) {
    if (!facts_.in_arena(v)) continue;
    if (!waits(v, stage) || kept_after(v, stage)) return false;
    if (node == stage && !(may_leave_[node] && is_made_after(v, stage))) return false;
  }
  return node != stage || may_leave_[node];
}

void Schedule::remove_if_unread(NodeId stage, NodeId node) {
  if (has_run(stage, node) && is_unread(stage, node)) remove_with_operands(stage, node);
}

void Schedule::remove_with_operands(NodeId stage, NodeId node) {
  remove_run(stage, node);
  std::vector<Step> left{{stage, node, false}};  // whose operands are to be looked at
  while (!left.empty()) {
    const Step step = left.back();
    left.pop_back();
    for (ValueId root : reads(step.node)) {
      if (!facts_.in_arena(root)) continue;
      const NodeId made = made_in(root, step.stage), maker = facts_.graph->values[root].node;
      if (made == kNone || !has_run(made, maker) || !is_unread(made, maker)) continue;
      remove_run(made, maker);
      left.push_back({made, maker, false});
    }
  }
}

// The stage that makes the copy of `root` that `stage` reads.
NodeId Schedule::made_in(ValueId root, NodeId stage) const {
  const auto& touches = touches_[root];
  for (std::size_t i = find_touch(root, stage + 1); i-- > 0;)
    if (touches[i].made) return touches[i].stage;
  return kNone;
}

bool Schedule::is_made_after(ValueId root, NodeId stage) const {
  const auto& touches = touches_[root];
  const std::size_t i = find_touch(root, stage + 1);
  return i < touches.size() && touches[i].made;
}

std::span<const ValueId> Schedule::reads(NodeId node) const {
  return passes_on_[node] ? std::span<const ValueId>() : facts_.reads(node);
}

// Adds to what a value's touch at `stage` says, making or dropping the touch, and moves the gaps around it. Of the bytes of the
// gaps, only the difference is added to the live bytes, on either side of the stage. The difference at the stage itself waits
// in local_ for refresh().
void Schedule::change_touch(ValueId root, NodeId stage, std::int32_t readers, int made) {
  ++work_;
  mark(stage, Stale::bytes_changed);
  auto& touches = touches_[root];
  const std::size_t i = find_touch(root, stage);
  const bool exists = i < touches.size() && touches[i].stage == stage;
  if (exists && made == 0 && touches[i].readers + readers > 0) {  // the gaps stay as they are
    touches[i].readers += readers;
    return;
  }
  const bool was_left = close_gap(root, i), was_right = exists ? close_gap(root, i + 1) : was_left;
  if (!exists) touches.insert(touches.begin() + static_cast<std::ptrdiff_t>(i), Touch{stage, 0, false, kNone});
  touches[i].readers += readers;
  if (made != 0) touches[i].made = made > 0;
  const bool stays = touches[i].readers > 0 || touches[i].made;
  if (!stays) touches.erase(touches.begin() + static_cast<std::ptrdiff_t>(i));
  const bool right = stays && open_gap(root, i + 1), left = open_gap(root, i);
  const std::size_t next = i + (stays ? 1 : 0);
  const std::int64_t bytes = facts_.bytes[root];
  if (left != was_left) {
    live_.add(touches[i - 1].stage + 1, stage - 1, left ? bytes : -bytes);
    mark(touches[i - 1].stage, Stale::bytes_changed);
  }
  if (const bool is_right = stays ? right : left; is_right != was_right)
    live_.add(stage + 1, touches[next].stage - 1, is_right ? bytes : -bytes);
  local_[stage] += (!exists && was_left ? bytes : 0) - (!stays && left ? bytes : 0);
}

// The gap that ends at touch i begins to be kept, unless the value is made anew there. Returns whether it does.
bool Schedule::open_gap(ValueId root, std::size_t i) {
  auto& touches = touches_[root];
  if (i == 0 || i >= touches.size() || touches[i].made) return false;
  const NodeId from = touches[i - 1].stage, to = touches[i].stage;
  if (free_gaps_.empty()) {
    free_gaps_.push_back(static_cast<std::int32_t>(gaps_.size()));
    gaps_.emplace_back();
  }
  touches[i].gap = free_gaps_.back();
  free_gaps_.pop_back();
  gaps_[touches[i].gap] = {root, from, to};
  if (index_) index_->add(touches[i].gap, from, to);
  mark(from, Stale::gap_moved);
  mark(to, Stale::gap_moved);
  return true;
}

// Returns whether there was a gap that ends at touch i.
bool Schedule::close_gap(ValueId root, std::size_t i) {
  auto& touches = touches_[root];
  if (i >= touches.size() || touches[i].gap == kNone) return false;
  Gap& gap = gaps_[touches[i].gap];
  mark(gap.from, Stale::gap_moved);
  mark(gap.to, Stale::gap_moved);
  if (index_) index_->remove(touches[i].gap, gap.from);
  gap = {};
  free_gaps_.push_back(touches[i].gap);
  touches[i].gap = kNone;
  return true;
}

void Schedule::index_gaps() {
  index_.emplace(stage_count());
  for (std::size_t i = 0; i < gaps_.size(); ++i)
    if (gaps_[i].value != kNone) index_->add(static_cast<std::int32_t>(i), gaps_[i].from, gaps_[i].to);
}

void Schedule::mark(NodeId stage, Stale why) {
  if (is_stale_[stage] == Stale::no) stale_.push_back(stage);
  is_stale_[stage] = std::max(is_stale_[stage], why);
}

// ---- questions ----

bool Schedule::kept_after(ValueId root, NodeId stage) const {
  const auto& touches = touches_[root];
  const std::size_t i = find_touch(root, stage + 1);
  return i < touches.size() && touches[i].gap != kNone;
}

// ---- live bytes within a stage ----

void Schedule::refresh() {
  for (NodeId stage : stale_) {
    if (is_stale_[stage] == Stale::bytes_changed) {
      const std::int64_t now = measure_local(stage);
      live_.add(stage, now - local_[stage]);
      local_[stage] = now;
    }
    is_stale_[stage] = Stale::no;
    work_ += static_cast<std::int64_t>(runs_[stage].size()) + 1;
  }
  stale_.clear();
}

void Schedule::note_local(ValueId root, std::int32_t position, bool made) {
  if (!facts_.in_arena(root)) return;
  Span& span = spans_[root];
  if (stamp_[root] != now_) {
    stamp_[root] = now_;
    span = {made ? position : 0, position, false};
    in_stage_.push_back(root);
  }
  span.last = position;
}

void Schedule::add_local(NodeId node, std::int32_t position, bool clone) {
  for (ValueId root : reads(node)) note_local(root, position, false);
  for (ValueId v : facts_.makes(node)) note_local(v, position, true);
  const std::int64_t scratch = facts_.workspace[node] + (clone ? facts_.clone_extra[node] : 0);
  delta_[position] += scratch;
  delta_[position + 1] -= scratch;
}

// An operand that dies here gives its bytes to an output: they are counted once.
void Schedule::take_over_local(NodeId node, std::int32_t position) {
  if (passes_on_[node]) return;
  const auto dies_here = [&](ValueId root) { return !spans_[root].exits && spans_[root].last == position; };
  take_over_in_place(facts_.takeovers(node), dies_here, [&](const RootPair& pair) {
    delta_[position] -= facts_.bytes[pair.from];
    delta_[position + 1] += facts_.bytes[pair.from];
  });
}

// Most stages run their own node alone. Then only takeovers depend on what is kept.
std::int64_t Schedule::measure_local(NodeId stage) {
  const std::vector<NodeId>& runs = runs_[stage];
  if (runs.size() != 1 || runs.front() != stage) return measure_runs(stage);
  std::int64_t bytes = alone_[stage];
  if (passes_on_[stage]) return bytes;
  take_over_in_place(
      facts_.takeovers(stage), [&](ValueId root) { return !kept_after(root, stage); },
      [&](const RootPair& pair) { bytes -= facts_.bytes[pair.from]; });
  return bytes;
}

std::int64_t Schedule::measure_runs(NodeId stage) {
  const std::vector<NodeId>& runs = runs_[stage];
  const auto steps = static_cast<std::int32_t>(runs.size());
  ++now_;
  in_stage_.clear();
  delta_.assign(static_cast<std::size_t>(steps) + 1, 0);
  for (std::int32_t i = 0; i < steps; ++i) add_local(runs[i], i, runs[i] != stage);
  for (ValueId root : in_stage_) {
    Span& span = spans_[root];
    span.exits = kept_after(root, stage);
    delta_[span.first] += facts_.bytes[root];
    delta_[span.exits ? steps : span.last + 1] -= facts_.bytes[root];
  }
  for (std::int32_t i = 0; i < steps; ++i) take_over_local(runs[i], i);
  std::int64_t alive = 0, most = 0;
  for (std::int32_t i = 0; i < steps; ++i) most = std::max(most, alive += delta_[i]);
  return most;
}

// ---- without clones ----

namespace {

// By root: the last node that makes or reads it.
std::vector<NodeId> last_touches(const Facts& facts) {
  std::vector<NodeId> last(facts.graph->values.size(), kNone);
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    for (ValueId root : facts.reads(n)) last[root] = n;
    for (ValueId v : facts.makes(n)) last[v] = n;
  }
  return last;
}

// The bytes of operands that results of node n take over.
std::int64_t taken_over(const Facts& facts, NodeId n, const std::vector<NodeId>& last) {
  std::int64_t bytes = 0;
  take_over_in_place(
      facts.takeovers(n), [&](ValueId root) { return last[root] == n; },
      [&](const RootPair& pair) { bytes += facts.bytes[pair.from]; });
  return bytes;
}

}  // namespace

std::int64_t peak_without_clones(const Facts& facts) {
  const std::vector<NodeId> last = last_touches(facts);
  std::int64_t alive = 0, peak = 0;
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    for (ValueId v : facts.makes(n)) alive += facts.bytes[v];
    peak = std::max(peak, alive + facts.workspace[n] - taken_over(facts, n, last));
    for (ValueId root : facts.reads(n))
      if (last[root] == n) alive -= facts.bytes[root];
    for (ValueId v : facts.makes(n))
      if (last[v] == n) alive -= facts.bytes[v];
  }
  return peak;
}

}  // namespace tapedeck
