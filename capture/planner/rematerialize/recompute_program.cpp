// Writes the integer program down, stage by stage. Columns that can only be 0 are left out: a node that runs again for nobody,
// a value that nobody reads any more.
#include <tapedeck/capture/planner/rematerialize/recompute_program.h>

#include <tapedeck/capture/planner/schedules/schedule.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostUnits = 1'000'000;  // budgets of more units are numbers too large for the solver's tolerances
constexpr double kCoarseUnits = 1000;

}  // namespace

RecomputeProgram::RecomputeProgram(const Facts& facts, std::int64_t live_bytes, double worth, double cost_unit)
    : facts_(facts), n_(facts.graph->node_count()), worth_(worth), cost_unit_(cost_unit) {
  std::int64_t common = 0;
  for (const std::vector<std::int64_t>* bytes : {&facts.bytes, &facts.workspace, &facts.clone_extra})
    for (const std::int64_t b : *bytes) common = std::gcd(common, b);
  common = std::max<std::int64_t>(common, 1);
  const bool is_coarse = live_bytes / common > kMostUnits;
  unit_ = is_coarse ? static_cast<double>(live_bytes) / kCoarseUnits : static_cast<double>(common);
  budget_ = in_units(live_bytes / common * common);
  list_readers();
  find_last_stages();
  add_runs_and_keeps();
  for (NodeId stage = 0; stage < n_; ++stage) add_stage(stage);
}

void RecomputeProgram::list_readers() {
  readers_.resize(facts_.graph->values.size());
  reads_.resize(facts_.graph->nodes.size());
  frees_.resize(facts_.graph->values.size());
  const std::vector<char> passes_on = passing_windows(facts_);
  for (NodeId n = 0; n < n_; ++n) {
    if (passes_on[n]) continue;
    for (ValueId v : facts_.reads(n)) {
      if (!has_bytes(v)) continue;
      readers_[v].push_back(n);
      reads_[n].push_back(v);
    }
  }
}

bool RecomputeProgram::may_repeat(NodeId n) const {
  const auto makes = facts_.makes(n);
  return facts_.can_repeat(n) && facts_.cost[n] <= worth_ &&
         std::any_of(makes.begin(), makes.end(), [&](ValueId v) { return has_bytes(v); });
}

// Readers come after makers, so one walk from the end finds both.
void RecomputeProgram::find_last_stages() {
  last_run_.assign(facts_.graph->nodes.size(), kNone);
  last_read_.assign(facts_.graph->values.size(), kNone);
  for (NodeId n = n_; n-- > 0;) {
    NodeId last = n;
    for (ValueId v : facts_.makes(n)) {
      for (NodeId reader : readers_[v]) last_read_[v] = std::max(last_read_[v], last_run_[reader]);
      last = std::max(last, last_read_[v]);
    }
    for (ValueId v : facts_.reads(n))
      if (!facts_.in_arena(v)) last = std::min(last, std::max(n, facts_.overwritten[v]));
    last_run_[n] = may_repeat(n) ? last : n;
  }
}

RecomputeProgram::Column RecomputeProgram::add_column(double cost, double least, double most, bool whole) {
  program_.columns.push_back({cost, least, most, whole});
  return static_cast<Column>(program_.columns.size()) - 1;
}

void RecomputeProgram::add_row(std::vector<Term> terms, double least, double most) {
  program_.rows.push_back({std::move(terms), least, most});
}

void RecomputeProgram::add_runs_and_keeps() {
  runs_.assign(facts_.graph->nodes.size(), std::vector<Column>(facts_.graph->nodes.size(), kNever));
  keeps_.assign(facts_.graph->nodes.size(), std::vector<Column>(facts_.graph->values.size(), kNever));
  for (NodeId stage = 0; stage < n_; ++stage) {
    for (NodeId n = 0; n < stage; ++n)
      if (stage <= last_run_[n]) runs_[stage][n] = add_column(facts_.cost[n] / cost_unit_, 0, 1, true);
    runs_[stage][stage] = add_column(0, 1, 1, false);
    for (NodeId n = 0; n < stage; ++n)
      for (ValueId v : facts_.makes(n))
        if (has_bytes(v) && stage <= last_read_[v]) keeps_[stage][v] = add_column(0, 0, 1, true);
  }
}

void RecomputeProgram::add_stage(NodeId stage) {
  for (NodeId n = 0; n <= stage; ++n) {
    for (ValueId v : facts_.makes(n)) {
      if (!has_bytes(v) || (keep(stage, v) == kNever && run(stage, n) == kNever)) continue;
      add_frees(stage, v);
      add_operands(stage, v);
    }
  }
  add_bytes(stage);
}

// The last run of a value's only maker frees nothing: it would run for nobody.
void RecomputeProgram::add_frees(NodeId stage, ValueId v) {
  const NodeId maker = facts_.graph->values[v].node;
  frees_[v].clear();
  if (run(stage, maker) != kNever && (maker == stage || facts_.makes(maker).size() > 1))
    frees_[v].push_back({maker, add_column(0, 0, 1, false)});
  for (NodeId reader : readers_[v])
    if (reader <= stage && run(stage, reader) != kNever) frees_[v].push_back({reader, add_column(0, 0, 1, false)});
  std::vector<Term> flow = {{keep(stage, v), 1}, {run(stage, maker), 1}, {keep(stage + 1, v), -1}};
  for (const Free& free : frees_[v]) {
    flow.push_back({free.column, -1});
    add_row({{free.column, 1}, {run(stage, free.after), -1}}, -kNoLimit, 0);
  }
  add_row(std::move(flow), 0, 0);
}

void RecomputeProgram::add_operands(NodeId stage, ValueId v) {
  std::vector<Term> there = {{keep(stage, v), -1}, {run(stage, facts_.graph->values[v].node), -1}};
  for (const Free& free : frees_[v]) {
    if (free.after != facts_.graph->values[v].node) {
      std::vector<Term> terms = there;
      terms.push_back({run(stage, free.after), 1});
      add_row(std::move(terms), -kNoLimit, 0);
    }
    there.push_back({free.column, 1});
  }
}

RecomputeProgram::Column RecomputeProgram::free_of(ValueId v, NodeId after) const {
  for (const Free& free : frees_[v])
    if (free.after == after) return free.column;
  return kNever;
}

double RecomputeProgram::made_by(NodeId n) const {
  std::int64_t bytes = 0;
  for (ValueId v : facts_.makes(n))
    if (has_bytes(v)) bytes += facts_.bytes[v];
  return in_units(bytes);
}

void RecomputeProgram::add_bytes(NodeId stage) {
  std::vector<Term> change;  // of the bytes alive since the last node that runs, or since the stage began
  for (NodeId n = 0; n < stage; ++n)
    for (ValueId v : facts_.makes(n))
      if (keep(stage, v) != kNever) change.push_back({keep(stage, v), in_units(facts_.bytes[v])});
  for (NodeId n = 0; n <= stage; ++n) {
    if (run(stage, n) == kNever) continue;
    const Column alive = add_column(0, 0, kNoLimit, false);
    change.push_back({alive, -1});
    add_row(std::move(change), 0, 0);
    add_budget(stage, n, alive);
    change = {{alive, 1}, {run(stage, n), made_by(n)}};
    for (ValueId v : reads_[n]) change.push_back({free_of(v, n), -in_units(facts_.bytes[v])});
    for (ValueId v : facts_.makes(n))
      if (has_bytes(v)) change.push_back({free_of(v, n), -in_units(facts_.bytes[v])});
  }
}

// An operand that goes after n gives its bytes to one result, and a result takes the bytes of one operand.
void RecomputeProgram::add_budget(NodeId stage, NodeId n, Column alive) {
  const std::int64_t scratch = facts_.workspace[n] + (n < stage ? facts_.clone_extra[n] : 0);
  std::vector<Term> terms = {{alive, 1}, {run(stage, n), made_by(n) + in_units(scratch)}};
  const auto pairs = facts_.takeovers(n);
  std::vector<Column> taken;
  for (const RootPair& pair : pairs) {
    taken.push_back(has_bytes(pair.from) ? add_column(0, 0, 1, false) : kNever);
    if (taken.back() == kNever) continue;
    terms.push_back({taken.back(), -in_units(facts_.bytes[pair.from])});
    add_row({{taken.back(), 1}, {free_of(pair.from, n), -1}}, -kNoLimit, 0);
  }
  add_row(std::move(terms), -kNoLimit, budget_);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (taken[i] != kNever && taken[j] != kNever && (pairs[i].from == pairs[j].from || pairs[i].to == pairs[j].to))
        add_row({{taken[i], 1}, {taken[j], 1}}, -kNoLimit, 1);
}

Changes RecomputeProgram::changes(const std::vector<double>& columns) const {
  Changes changes;
  for (NodeId stage = 0; stage < n_; ++stage)
    for (NodeId n = 0; n < stage; ++n)
      if (run(stage, n) != kNever && columns[run(stage, n)] > 0.5) changes.push_back({stage, n, true});
  return changes;
}

}  // namespace tapedeck
