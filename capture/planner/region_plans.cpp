// Plans regions, and remembers the plans for the whole process. Planning one graph asks for the plan of the same region many
// times: for the workspaces of every order of nodes, and once more for the finished plan.
#include <tapedeck/capture/planner/region_plans.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int64_t kPointsOfRegion = 6;  // plans of one region in fewer bytes
// A search for them searches in the regions inside, too, twice in some. So it stops at this many levels of regions in a region.
constexpr int kMostLevels = 2;

using Plans = std::vector<std::shared_ptr<const Plan>>;

class KnownPlans {
 public:
  std::shared_ptr<const Plan> find(const Region& region) {
    const std::lock_guard lock(mutex_);
    if (const auto it = of_region_.find(region.get()); it != of_region_.end() && it->second.region.lock() == region)
      return it->second.plan;
    if (const auto it = with_graph_.find(region.get()); it != with_graph_.end())
      return it->second.lock();  // null if it is gone
    return nullptr;
  }

  void add(const Region& region, std::shared_ptr<const Plan> plan) {
    const std::lock_guard lock(mutex_);
    if (of_region_.size() >= forget_at_) forget_expired();
    with_graph_[&plan->graph] = plan;
    of_region_[region.get()] = {region, std::move(plan), std::nullopt};
  }

  std::optional<Plans> find_fewer(const Region& region) {
    const std::lock_guard lock(mutex_);
    const auto it = of_region_.find(region.get());
    return it != of_region_.end() && it->second.region.lock() == region ? it->second.in_fewer_bytes : std::nullopt;
  }

  // The region may be one of a plan made here, which no entry stands for: then nothing is remembered but whose graphs these
  // are.
  void add_fewer(const Region& region, const Plans& plans) {
    const std::lock_guard lock(mutex_);
    for (const auto& plan : plans) with_graph_[&plan->graph] = plan;
    if (const auto it = of_region_.find(region.get()); it != of_region_.end() && it->second.region.lock() == region)
      it->second.in_fewer_bytes = plans;
  }

 private:
  struct Known {
    std::weak_ptr<const Graph> region;
    std::shared_ptr<const Plan> plan;
    std::optional<Plans> in_fewer_bytes;  // once they were asked for
  };

  // Looks at all plans only after as many new ones, so that each new plan costs the same.
  void forget_expired() {
    std::erase_if(of_region_, [](const auto& entry) { return entry.second.region.expired(); });
    std::erase_if(with_graph_, [](const auto& entry) { return entry.second.expired(); });
    forget_at_ = 2 * of_region_.size() + kLeastForgotten;
  }

  static constexpr std::size_t kLeastForgotten = 16;
  std::size_t forget_at_ = kLeastForgotten;
  std::mutex mutex_;
  std::map<const Graph*, Known> of_region_;                       // by the region as it was
  std::map<const Graph*, std::weak_ptr<const Plan>> with_graph_;  // by the region as it is planned
};

KnownPlans& known_plans() {
  static KnownPlans known;
  return known;
}

Plans plans_of_regions(const Graph& graph) {
  Plans plans(graph.regions.size());
  for (const Node& node : graph.nodes) {
    if (!runs_regions_by_plan(node)) continue;
    for (std::int32_t r = node.first_region; r < node.first_region + node.n_regions; ++r)
      plans[r] = plan_region(graph.regions[r]);
  }
  return plans;
}

// Budgets between the floor of a region and its peak; the floor last.
std::vector<std::int64_t> budgets_below(std::int64_t peak, std::int64_t floor) {
  std::vector<std::int64_t> budgets;
  for (std::int64_t k = kPointsOfRegion - 1; k >= 0; --k) budgets.push_back(floor + (peak - floor) / kPointsOfRegion * k);
  return budgets;
}

// Whether regions lie in the graph more than `levels` deep. Each level is looked at once, however often a region stands in it.
bool nests_deeper(const Graph& graph, int levels) {
  std::set<const Graph*> level{&graph};
  for (; levels >= 0 && !level.empty(); --levels) {
    std::set<const Graph*> next;
    for (const Graph* g : level)
      for (const Region& region : g->regions) next.insert(region.get());
    level = std::move(next);
  }
  return !level.empty();
}

Plans search_fewer(const Region& region) {
  Plans found;
  if (nests_deeper(*region, kMostLevels)) return found;
  const std::shared_ptr<const Plan> kept = plan_region(region);
  PlanSearch search(*region, {}, SearchEffort::draft);
  if (search.floor() >= kept->peak_bytes) return found;
  const Plan* last = kept.get();
  for (const std::int64_t budget : budgets_below(kept->peak_bytes, search.floor())) {
    auto plan = std::make_shared<const Plan>(search.plan(budget));
    if (!plan->feasible || frame_bytes(*plan) >= frame_bytes(*last)) continue;
    found.push_back(std::move(plan));
    last = found.back().get();
  }
  return found;
}

void use_planned(const std::vector<std::shared_ptr<const Plan>>& plans, Graph* graph) {
  for (std::size_t r = 0; r < plans.size(); ++r)
    if (plans[r]) graph->regions[r] = Region(plans[r], &plans[r]->graph);
}

}  // namespace

std::shared_ptr<const Plan> plan_region(const Region& region) {
  KnownPlans& known = known_plans();
  if (std::shared_ptr<const Plan> plan = known.find(region)) return plan;
  PlanOptions options;
  options.strategy = Strategy::none;
  options.find_floor = false;
  auto plan = std::make_shared<const Plan>(make_plan(*region, options));
  known.add(region, plan);
  return plan;
}

std::vector<std::shared_ptr<const Plan>> plans_in_fewer_bytes(const Region& region) {
  KnownPlans& known = known_plans();
  if (std::optional<Plans> plans = known.find_fewer(region)) return *std::move(plans);
  Plans plans = search_fewer(region);
  known.add_fewer(region, plans);
  return plans;
}

std::vector<std::int64_t> node_workspaces(const Graph& graph) {
  const std::vector<std::shared_ptr<const Plan>> plans = plans_of_regions(graph);
  std::vector<std::int64_t> bytes;
  bytes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    const std::span<const std::shared_ptr<const Plan>> own(plans.data() + node.first_region,
                                                           static_cast<std::size_t>(node.n_regions));
    bytes.push_back(node.n_regions > 0 ? region_workspace(graph, node, own) : kernel_workspace(graph, node));
  }
  return bytes;
}

Graph with_planned_regions(Graph graph) {
  use_planned(plans_of_regions(graph), &graph);
  return graph;
}

void plan_regions(Plan* plan) {
  plan->region_plans = plans_of_regions(plan->graph);
  use_planned(plan->region_plans, &plan->graph);
}

}  // namespace tapedeck
