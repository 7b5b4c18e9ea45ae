// How find() gets an executor:
//
//     kept from an earlier call                           hit
//     one graph for all sizes, and an upper-bound plan    fitted()     the plan at the largest sizes, fitted
//     one graph for all sizes, but no such plan           planned()    a plan of its own
//     no one graph, and recorded twice at these sizes     planned()    the recorded graph
//     otherwise                                           none: the function runs
#include <tapedeck/capture/step/size_buckets.h>

#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/fit_plan_to_sizes.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/sizes/retype.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace tapedeck {

namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double* sum) : sum_(sum), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { *sum_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double* sum_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

struct DimBuckets::Impl {
  struct Recorded {
    Graph graph;
    std::vector<std::int64_t> sizes;  // by dim
    int times = 1;
  };

  struct Bucket {
    std::vector<std::int64_t> sizes;
    std::shared_ptr<Executor> executor;
  };

  DimOptions options;
  PlanOptions plan_options;
  ExecutorOptions executor_options;

  DimTable table;
  std::vector<Recorded> recorded;
  bool general = false;
  std::string why;                   // the reason if it is not general
  std::vector<std::string> history;  // sizes that were planned by themselves or refused, and why

  // The graph by which the upper-bound plan is fitted: as recorded, or, if passes rewrite it, as they leave it.
  std::optional<Graph> base, largest;  // at the first sizes recorded, at the upper bounds
  DimTable base_table;
  std::unique_ptr<Executor> parent;  // replays `largest`; all other executors share its memory
  std::unique_ptr<Refit> refit;
  std::string no_upper_bound;  // why there is no parent
  std::list<Bucket> buckets;   // most recently used first
  BucketStats stats;

  // ---- sizes ----

  std::vector<std::int64_t> by_dim(const Sizes& sizes) const {
    std::vector<std::int64_t> list;
    for (const DimRange& d : table.dims) list.push_back(sizes.at(d.name));
    return list;
  }

  Sizes by_name(const std::vector<std::int64_t>& list) const {
    Sizes sizes;
    for (std::size_t d = 0; d < list.size(); ++d) sizes[table.dims[d].name] = list[d];
    return sizes;
  }

  bool varied(std::size_t d) const {
    return std::any_of(recorded.begin(), recorded.end(), [&](const Recorded& r) { return r.sizes[d] != recorded[0].sizes[d]; });
  }

  // True if the rules cover these sizes: a dimension that was the same in all recordings may not change.
  bool covers(const std::vector<std::int64_t>& sizes) const {
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (!varied(d) && sizes[d] != recorded[0].sizes[d]) return false;
    return true;
  }

  // ---- recordings ----

  void forget_executors() {
    buckets.clear();
    refit.reset();
    parent.reset();
    base.reset();
    largest.reset();
    no_upper_bound.clear();
  }

  void solve() {
    general = false;
    forget_executors();
    if (recorded.size() < std::max<std::size_t>(options.recordings, 2)) {
      why = fmt::format("recorded at {} of {} different sizes", recorded.size(), std::max<std::size_t>(options.recordings, 2));
      return;
    }
    std::vector<DimSample> samples;
    for (const Recorded& r : recorded) samples.push_back({&r.graph, r.sizes});
    const DimFindings findings = find_rules(&table, samples);
    general = findings.found;
    why = findings.why;
  }

  // ---- executors ----

  void make_parent() {
    Sizes sizes;
    for (std::size_t d = 0; d < table.dims.size(); ++d) {
      if (varied(d) && !table.dims[d].bounded())
        return void(no_upper_bound = fmt::format("dimension '{}' has no upper bound", table.dims[d].name));
      sizes[table.dims[d].name] = varied(d) ? table.dims[d].max : recorded[0].sizes[d];
    }
    try {
      const Graph at_most = retype(recorded[0].graph, table, sizes);
      Plan plan = make_plan(at_most, plan_options);
      ++stats.planned;
      if (!plan.feasible) return void(no_upper_bound = fmt::format("at {}: {}", to_string(sizes), plan.infeasible_reason));
      if (!serves(recorded[0].graph, table, at_most, plan) && !serves_prepared(by_dim(sizes), plan)) return;
      no_upper_bound.clear();
      parent = std::make_unique<Executor>(std::move(plan), executor_options);
      refit = std::make_unique<Refit>(*base, base_table, *largest, parent->plan());
    } catch (const TypeError& error) {
      no_upper_bound = fmt::format("at {}: {}", to_string(sizes), error.what());
    }
  }

  // True if the plan serves this graph at every size; then the graph is kept.
  bool serves(const Graph& graph, const DimTable& rules, const Graph& at_most, const Plan& plan) {
    no_upper_bound = Refit(graph, rules, at_most, plan).obstacle();
    if (!no_upper_bound.empty()) return false;
    base = graph;
    base_table = rules;
    largest = at_most;
    return true;
  }

  // Passes have rewritten the graph. If they do the same at every recorded size and at the largest, the rewritten graph follows
  // the sizes by rules too.
  bool serves_prepared(const std::vector<std::int64_t>& most, const Plan& plan) {
    PassRunner passes({.level = plan_options.level});
    std::vector<std::vector<std::int64_t>> sizes;
    for (const Recorded& r : recorded) sizes.push_back(r.sizes);
    sizes.push_back(most);
    std::vector<Graph> prepared;
    for (const auto& list : sizes) prepared.push_back(prepare(retype(recorded[0].graph, table, by_name(list)), &passes));
    std::vector<DimSample> samples;
    for (std::size_t i = 0; i < sizes.size(); ++i) samples.push_back({&prepared[i], sizes[i]});
    DimTable rules = table;
    const DimFindings findings = find_rules(&rules, samples);
    if (findings.found) return serves(prepared[0], rules, prepared.back(), plan);
    no_upper_bound = findings.why;
    return false;
  }

  std::unique_ptr<Executor> fitted(const std::vector<std::int64_t>& sizes, std::string* reason) {
    std::optional<Plan> plan =
        fit_plan(parent->plan(), refit->planned_graph(retype(*base, base_table, by_name(sizes))), reason);
    if (!plan) return nullptr;
    try {
      auto executor = std::make_unique<Executor>(parent->reshape(std::move(*plan)));
      ++stats.fitted;
      return executor;
    } catch (const InvalidGraphError& error) {  // the fitted plan is no plan at these sizes, so they get one of their own
      *reason = error.what();
      return nullptr;
    }
  }

  std::unique_ptr<Executor> planned(const Graph& graph) {
    Plan plan = make_plan(graph, plan_options);
    ++stats.planned;
    if (!plan.feasible) throw InfeasiblePlanError("capture", plan);
    return std::make_unique<Executor>(std::move(plan), executor_options);
  }

  std::unique_ptr<Executor> make(const std::vector<std::int64_t>& sizes) {
    if (!general) return planned(exact(sizes)->graph);
    if (!parent && no_upper_bound.empty()) make_parent();
    std::string reason;
    std::unique_ptr<Executor> executor;
    if (parent) executor = fitted(sizes, &reason);
    if (!executor && parent) {
      const std::string line = fmt::format("{}: planned by itself: {}", to_string(by_name(sizes)), reason);
      if (std::find(history.begin(), history.end(), line) == history.end()) history.push_back(line);
    }
    return executor ? std::move(executor) : planned(retype(recorded[0].graph, table, by_name(sizes)));
  }

  const Recorded* exact(const std::vector<std::int64_t>& sizes) const {
    for (const Recorded& r : recorded)
      if (r.sizes == sizes) return &r;
    return nullptr;
  }

  std::shared_ptr<Executor> find(const std::vector<std::int64_t>& sizes) {
    for (auto it = buckets.begin(); it != buckets.end(); ++it) {
      if (it->sizes != sizes) continue;
      ++stats.hits;
      buckets.splice(buckets.begin(), buckets, it);
      return buckets.front().executor;
    }
    const Recorded* same = exact(sizes);
    if (general ? !covers(sizes) : !same || same->times < 2) return nullptr;
    ++stats.misses;
    const Stopwatch watch(&stats.make_ms);
    std::unique_ptr<Executor> executor;
    try {
      executor = make(sizes);
    } catch (const TypeError& error) {
      // Inference refuses this size. The function is run instead, and the user sees its own error.
      const std::string line = fmt::format("{}: {}", to_string(by_name(sizes)), error.what());
      if (std::find(history.begin(), history.end(), line) == history.end()) history.push_back(line);
      return nullptr;
    }
    buckets.push_front({sizes, std::move(executor)});
    while (buckets.size() > std::max<std::size_t>(options.capacity, 1)) {
      buckets.pop_back();
      ++stats.evicted;
    }
    return buckets.front().executor;
  }
};

DimBuckets::DimBuckets(DimOptions dims, PlanOptions plan, ExecutorOptions executor) : impl_(std::make_unique<Impl>()) {
  for (const DimRange& d : dims.ranges) {
    if (d.name.empty() ||
        d.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != d.name.npos ||
        (d.name[0] >= '0' && d.name[0] <= '9'))
      throw UsageError(fmt::format("a dimension's name is a word that begins with a letter, not '{}'", d.name));
    if (impl_->table.find(d.name) != kNone) throw UsageError(fmt::format("dimension '{}' is declared twice", d.name));
    if (d.min < 0 || d.max < d.min) throw UsageError(fmt::format("dimension '{}' goes from {} to {}", d.name, d.min, d.max));
    impl_->table.dims.push_back(d);
  }
  for (const auto& [input, names] : dims.inputs)
    for (std::size_t axis = 0; axis < names.size(); ++axis) {
      if (names[axis].empty()) continue;
      const std::int32_t dim = impl_->table.find(names[axis]);
      if (dim == kNone)
        throw UsageError(fmt::format("input '{}' names dimension '{}', which is not declared", input, names[axis]));
      impl_->table.axes.push_back({input, static_cast<std::int32_t>(axis), dim});
    }
  for (std::size_t d = 0; d < impl_->table.dims.size(); ++d)
    if (std::none_of(impl_->table.axes.begin(), impl_->table.axes.end(),
                     [&](const auto& a) { return a.dim == static_cast<std::int32_t>(d); }))
      throw UsageError(fmt::format("dimension '{}' is no axis of any input", impl_->table.dims[d].name));
  impl_->options = std::move(dims);
  impl_->plan_options = std::move(plan);
  impl_->plan_options.find_floor = false;  // a step does not tell its floor
  impl_->executor_options = std::move(executor);
}
DimBuckets::~DimBuckets() = default;
DimBuckets::DimBuckets(DimBuckets&&) noexcept = default;

Sizes DimBuckets::sizes_of(const std::map<std::string, Type>& inputs) const {
  Sizes sizes;
  std::map<std::string, std::string> said_by;
  for (const DimTable::Axis& a : impl_->table.axes) {
    const DimRange& d = impl_->table.dims[a.dim];
    const auto it = inputs.find(a.input);
    if (it == inputs.end())
      throw TypeError(error_text(
          "capture", fmt::format("the step has no input '{}', whose axis {} is dimension '{}'", a.input, a.axis, d.name), {}));
    if (a.axis >= it->second.shape.rank)
      throw TypeError(error_text("capture",
                                 fmt::format("input '{}' is {}: it has no axis {} to be dimension '{}'", a.input,
                                             to_string(it->second), a.axis, d.name),
                                 {}));
    const std::int64_t size = it->second.shape[a.axis];
    const auto [known, fresh] = sizes.emplace(d.name, size);
    if (!fresh && known->second != size)
      throw TypeError(error_text("capture",
                                 fmt::format("dimension '{}' is {} by {} and {} by axis {} of '{}'", d.name, known->second,
                                             said_by[d.name], size, a.axis, a.input),
                                 {}));
    if (fresh) said_by[d.name] = fmt::format("axis {} of '{}'", a.axis, a.input);
    if (size < d.min || size > d.max)
      throw TypeError(error_text("capture",
                                 fmt::format("dimension '{}' is {} by axis {} of '{}'; it was declared from {} to {}", d.name,
                                             size, a.axis, a.input, d.min, d.bounded() ? std::to_string(d.max) : "any size"),
                                 {}));
  }
  return sizes;
}

void DimBuckets::add(const Graph& graph, const Sizes& sizes) {
  Impl& impl = *impl_;
  const std::vector<std::int64_t> list = impl.by_dim(sizes);
  for (DimBuckets::Impl::Recorded& r : impl.recorded) {
    if (r.sizes != list) continue;
    // The second recording at this size (the caller has compared the two).
    ++r.times;
    r.graph = graph;
    impl.solve();
    return;
  }
  impl.recorded.push_back({graph, list});
  impl.solve();
}

std::shared_ptr<Executor> DimBuckets::find(const Sizes& sizes) { return impl_->find(impl_->by_dim(sizes)); }

Graph DimBuckets::graph_at(const Sizes& sizes) const {
  const std::vector<std::int64_t> list = impl_->by_dim(sizes);
  if (impl_->general) return retype(impl_->recorded[0].graph, impl_->table, sizes);
  const auto* r = impl_->exact(list);
  if (!r) throw UsageError(fmt::format("nothing was recorded at {}", to_string(sizes)));
  return r->graph;
}

const DimTable& DimBuckets::table() const { return impl_->table; }
bool DimBuckets::general() const { return impl_->general; }
const BucketStats& DimBuckets::stats() const { return impl_->stats; }

std::string DimBuckets::explain() const {
  const Impl& impl = *impl_;
  std::string text = "dimensions:\n";
  for (std::size_t d = 0; d < impl.table.dims.size(); ++d) {
    const DimRange& r = impl.table.dims[d];
    text += fmt::format("  {}: {} to {}", r.name, r.min, r.bounded() ? std::to_string(r.max) : "any size");
    std::string where;
    for (const DimTable::Axis& a : impl.table.axes)
      if (a.dim == static_cast<std::int32_t>(d))
        where += fmt::format("{}{} axis {}", where.empty() ? "; " : ", ", a.input, a.axis);
    text += where + "\n";
  }
  std::string at;
  for (const DimBuckets::Impl::Recorded& r : impl.recorded)
    at += fmt::format("{}({})", at.empty() ? "" : ", ", to_string(impl.by_name(r.sizes)));
  if (!at.empty()) text += fmt::format("recorded at {}\n", at);
  if (impl.general) {
    text += "one graph for all sizes\n";
    for (const DimTable::Entry& e : impl.table.entries)
      text += fmt::format("  {}.{}{} = {}\n", e.node, e.field, e.element >= 0 ? fmt::format(".{}", e.element) : "",
                          rule_text(impl.table, e.rule));
  } else if (!impl.recorded.empty()) {
    text += fmt::format("not one graph for all sizes: {}\n", impl.why);
  }
  if (impl.parent)
    text += fmt::format("upper bound: one plan of {} bytes serves every size\n", impl.parent->plan().peak_bytes);
  else if (!impl.no_upper_bound.empty())
    text += fmt::format("a plan for each size: {}\n", impl.no_upper_bound);
  for (const std::string& line : impl.history) text += fmt::format("  {}\n", line);
  const BucketStats& s = impl.stats;
  text += fmt::format("buckets: {} in use, {} hits, {} misses ({} fitted, {} planned, {} evicted, {:.3f} ms in all)\n",
                      impl.buckets.size(), s.hits, s.misses, s.fitted, s.planned, s.evicted, s.make_ms);
  return text;
}

}  // namespace tapedeck
