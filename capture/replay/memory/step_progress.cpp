#include <tapedeck/capture/replay/memory/step_progress.h>

#include <fmt/format.h>

namespace tapedeck::replay {

void StepProgress::prepare() {
  if (!prepared()) {
    segment_of_.resize(plan_.graph.nodes.size());
    place_.resize(plan_.graph.nodes.size());
    std::size_t before = 0;
    for (std::size_t s = 0; s < plan_.segments.size(); ++s) {
      first_.push_back(static_cast<std::int32_t>(before));
      before += plan_.segments[s].nodes.size();
      for (std::size_t k = 0; k < plan_.segments[s].nodes.size(); ++k) {
        segment_of_[plan_.segments[s].nodes[k]] = static_cast<std::int32_t>(s);
        place_[plan_.segments[s].nodes[k]] = static_cast<std::int32_t>(k);
      }
    }
  }
  if (under_way()) return;
  cut_.assign(plan_.segments.size(), 0);
  left_ = plan_.graph.node_count();
}

void StepProgress::advance(const Cut& cut, std::int32_t left) {
  cut_ = cut;
  left_ = left;
}

bool StepProgress::reached(const Cut& cut) const {
  for (std::size_t s = 0; s < cut.size(); ++s)
    if (cut_[s] < cut[s]) return false;
  return true;
}

bool StepProgress::has_run(NodeId node) const {
  if (complete_ || node == kNone) return true;
  return under_way() && place_[node] < cut_[segment_of_[node]];
}

std::string StepProgress::due() const {
  const std::int32_t all = plan_.graph.node_count();
  for (std::size_t s = 0; s < plan_.segments.size(); ++s) {
    const std::vector<NodeId>& nodes = plan_.segments[s].nodes;
    if (cut_[s] == static_cast<std::int32_t>(nodes.size())) continue;
    return fmt::format("{} of {} nodes have run, next is `{}`", all - left_, all, plan_.graph.node_text(nodes[cut_[s]]));
  }
  return fmt::format("all {} nodes have run", all);
}

}  // namespace tapedeck::replay
