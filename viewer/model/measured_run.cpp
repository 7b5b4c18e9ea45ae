// Turns timelines into bytes held while each node ran. The events of live_blocks() and the starts and ends of nodes are merged
// in order of time:
//
//     time     0   10   20   30   40          node 0 ran from 0 to 20, and node 1 from 20 to 40
//     bytes    a   a   a+b  a+b   b           so node 1 saw a + b, although b was written at its start
#include <tapedeck/viewer/model/measured_run.h>

#include <tapedeck/capture/explain/live_blocks.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

namespace tapedeck::viewer {

namespace {

constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();

// A change of the bytes, or the start or end of a node. Of equal times, a node ends before the next one in the plan starts;
// bytes begin before their node starts, and end after it ended.
struct Moment {
  std::int64_t at_ns = 0;
  std::int64_t place = 0;  // 4 * node: begin of bytes, start of node, end of node, end of bytes
  std::int64_t bytes = 0;
  NodeId node = kNone;  // that starts or ends; kNone: a change of the bytes
  bool starts = false;
};

void add_blocks(const LiveBlocks& blocks, std::vector<Moment>* moments) {
  for (const LiveBlock& b : blocks.blocks) {
    const std::int64_t first = b.first == kNone ? -1 : 4 * static_cast<std::int64_t>(b.first);
    const std::int64_t last =
        b.last == kNone ? std::numeric_limits<std::int64_t>::max() : 4 * static_cast<std::int64_t>(b.last) + 3;
    moments->push_back({b.start_ns, first, b.bytes, kNone, true});
    moments->push_back({b.end_ns, last, -b.bytes, kNone, false});
  }
}

void add_nodes(const Timeline& step, std::size_t nodes, std::vector<Moment>* moments) {
  for (const Slice& s : step.slices) {
    if (s.node < 0 || static_cast<std::size_t>(s.node) >= nodes) continue;
    moments->push_back({s.start_ns, 4 * static_cast<std::int64_t>(s.node) + 1, 0, s.node, true});
    moments->push_back({s.end_ns, 4 * static_cast<std::int64_t>(s.node) + 2, 0, s.node, false});
  }
}

}  // namespace

StepTimes step_times(const std::vector<double>& us) {
  const auto [least, most] = std::minmax_element(us.begin(), us.end());
  return {median(us), *least, *most, static_cast<std::int64_t>(us.size())};
}

double deviation(double measured, double planned) { return planned > 0 ? measured / planned - 1 : 0; }

std::string deviation_text(double measured, double planned) {
  return measured == planned ? "0 %" : fmt::format("{:+.2f} %", 100 * deviation(measured, planned));
}

std::int64_t raise_live_bytes(const Plan& plan, const Timeline& step, std::vector<std::int64_t>* live) {
  std::vector<Moment> moments;
  add_blocks(live_blocks(plan, step), &moments);
  add_nodes(step, live->size(), &moments);
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    return std::tie(a.at_ns, a.place, a.bytes) < std::tie(b.at_ns, b.place, b.bytes);
  });
  std::vector<NodeId> running;  // as many as threads
  std::int64_t bytes = plan.external_bytes, most = bytes;
  const auto raise = [&](NodeId n) {
    (*live)[static_cast<std::size_t>(n)] = std::max((*live)[static_cast<std::size_t>(n)], bytes);
  };
  for (const Moment& m : moments) {
    bytes += m.bytes;
    most = std::max(most, bytes);
    if (m.node == kNone) {
      for (const NodeId n : running) raise(n);
    } else if (m.starts) {
      running.push_back(m.node);
      raise(m.node);
    } else {
      std::erase(running, m.node);
    }
  }
  return most;
}

std::vector<double> measured_node_us(const MeasuredRun& run, const PlanModel& model) {
  if (run.plan == model.serial()) return run.node_us;
  std::unordered_map<std::string_view, const NodeTime*> times;
  for (const NodeTime& time : run.times.nodes) times.emplace(time.name, &time);
  const Graph& graph = model.graph();
  std::vector<double> us(graph.nodes.size(), kNoTime);
  for (std::size_t n = 0; n < us.size(); ++n) {
    const auto found = times.find(profile_name(graph, graph.nodes[n]));
    if (found != times.end() && found->second->op == graph.nodes[n].op->name) us[n] = found->second->us;
  }
  return us;
}

}  // namespace tapedeck::viewer
