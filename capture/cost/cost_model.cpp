#include <tapedeck/capture/cost/cost_model.h>

#include <tapedeck/capture/cost/node_costs.h>

#include <unordered_map>

namespace tapedeck {

namespace {

// Times that are too short to measure well give no ratio.
constexpr double kLeastUs = 0.1;

class Measured {
 public:
  Measured(const Graph& graph, const Profile& profile) : graph_(graph) {
    for (const NodeTime& t : profile.nodes) times_.try_emplace(t.name, Time{&t, false});
  }

  void apply(NodeCosts* costs) {
    std::vector<char> known(costs->us.size(), 0);
    std::vector<double> ratios;
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      const auto i = static_cast<std::size_t>(n);
      const NodeTime* time = find(graph_.nodes[i]);
      if (!time) continue;
      known[i] = 1;
      ++costs->measured;
      if (costs->us[i] >= kLeastUs && time->us >= kLeastUs) ratios.push_back(time->us / costs->us[i]);
      costs->us[i] = time->us;
    }
    for (const auto& [name, time] : times_) costs->strangers += !time.used;  // a sum: the order does not matter
    if (costs->measured == 0) return;
    costs->source = "profile";
    if (!ratios.empty()) costs->scale = median(std::move(ratios));
    for (std::size_t i = 0; i < known.size(); ++i)
      if (!known[i]) costs->us[i] = sane_us(costs->us[i] * costs->scale);
  }

 private:
  struct Time {
    const NodeTime* time;
    bool used;
  };

  const NodeTime* find(const Node& node) {
    const auto it = times_.find(profile_name(graph_, node));
    if (it == times_.end() || it->second.time->op != node.op->name || !plausible_us(it->second.time->us)) return nullptr;
    it->second.used = true;
    return it->second.time;
  }

  const Graph& graph_;
  std::unordered_map<std::string, Time> times_;
};

}  // namespace

NodeCosts cost_nodes(const Graph& graph, const CostModel* model) {
  NodeCosts costs;
  const Calibration* calibration = model && model->calibration ? &*model->calibration : nullptr;
  costs.us = node_costs(graph, calibration);
  if (calibration) costs.source = "calibrated";
  if (model && model->profile) Measured(graph, *model->profile).apply(&costs);
  return costs;
}

}  // namespace tapedeck
