// The simulated clock. Each thread has one segment and works through its nodes; each step of the clock goes to the next moment
// at which a node or a dispatch ends. Threads without a segment help with kernels that may use more than one thread.
//
//     thread 0   | dispatch | %a ...... | dispatch | %c ...... |
//     thread 1   | dispatch | %b .... |  helps with %a, at 0.8 of its speed
#include <tapedeck/capture/planner/segments/simulate_run.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace tapedeck {

namespace {

constexpr double kGainOfHelp = 0.8;  // of a whole thread that each thread helping with a kernel adds
constexpr double kPieceUs = 20;      // of a parallel loop inside a kernel (kernels/parallel.h: grain_for)

class Simulation {
 public:
  Simulation(const std::vector<Segment>& segments, const std::vector<double>& node_cost,
             const std::vector<std::int32_t>& most_threads, const SimulatedMachine& machine,
             std::vector<SimulatedSlice>* slices)
      : segments_(segments),
        cost_(node_cost),
        most_threads_(most_threads),
        machine_(machine),
        slices_(slices),
        is_busy_(static_cast<std::size_t>(machine.threads)),
        last_help_(static_cast<std::size_t>(machine.threads), static_cast<std::size_t>(-1)),
        crowded_us_(node_cost.size(), 0),
        node_us_(node_cost.size(), 0) {
    run_.began.assign(segments.size(), 0);
    run_.ended.assign(segments.size(), 0);
    for (std::size_t s = 0; s < segments.size(); ++s) {
      waits_.push_back(segments[s].n_predecessors);
      if (waits_[s] == 0) free_.push(static_cast<std::int32_t>(s));
    }
  }

  SimulatedRun run() {
    for (;;) {
      while (static_cast<std::int32_t>(active_.size()) < machine_.threads && !free_.empty()) {
        begin(free_.top());
        free_.pop();
      }
      if (active_.empty()) break;
      step();
    }
    run_.crowded.assign(cost_.size(), false);
    for (std::size_t n = 0; n < cost_.size(); ++n) run_.crowded[n] = crowded_us_[n] > 0.5 * node_us_[n];
    return std::move(run_);
  }

 private:
  struct Thread {
    std::int32_t segment = kNone;
    std::int32_t at = kNone;  // index of the node at hand in the segment; kNone while the segment is being dispatched
    double left_us = 0;       // of what is at hand, on one thread
    double gain = 1;          // how much faster it goes for the help it gets
    std::int32_t number = 0;  // of the thread
    double since_us = 0;      // it has had what is at hand since then
  };

  NodeId node_of(const Thread& t) const { return t.at == kNone ? kNone : segments_[t.segment].nodes[t.at]; }

  void begin(std::int32_t segment) {
    run_.began[segment] = moment_++;
    const auto idle = std::find(is_busy_.begin(), is_busy_.end(), false);
    *idle = true;
    active_.push_back(
        {segment, kNone, machine_.dispatch_us, 1, static_cast<std::int32_t>(idle - is_busy_.begin()), run_.makespan_us});
  }

  void note(const Thread& t) {
    if (slices_ != nullptr && run_.makespan_us > t.since_us)
      slices_->push_back({node_of(t), t.segment, t.number, t.since_us, run_.makespan_us});
  }

  // Whole threads stand for the shares of the idle threads: the first of them help with the first kernels.
  void note_help(double us) {
    if (slices_ == nullptr || us <= 0) return;
    std::size_t helper = 0;
    for (const Thread& t : active_) {
      for (double left = (t.gain - 1) / kGainOfHelp; left > 1e-9; left -= 1) {
        while (helper < is_busy_.size() && is_busy_[helper]) ++helper;
        if (helper == is_busy_.size()) return;
        note_help(static_cast<std::int32_t>(helper++), node_of(t), us);
      }
    }
  }
  void note_help(std::int32_t thread, NodeId node, double us) {
    std::size_t& last = last_help_[static_cast<std::size_t>(thread)];
    const double now = run_.makespan_us;
    if (last < slices_->size() && (*slices_)[last].node == node && (*slices_)[last].end_us == now) {
      (*slices_)[last].end_us = now + us;
      return;
    }
    last = slices_->size();
    slices_->push_back({node, kNone, thread, now, now + us});
  }

  // Idle threads are shared out among the kernels that can use them.
  void share_help() {
    const auto idle = machine_.threads - static_cast<std::int32_t>(active_.size());
    std::int32_t helped = 0;
    for (const Thread& t : active_)
      if (t.at != kNone && most_threads_[node_of(t)] > 1) ++helped;
    for (Thread& t : active_) {
      t.gain = 1;
      if (t.at == kNone || helped == 0) continue;
      const double most = most_threads_[node_of(t)] - 1;
      t.gain += kGainOfHelp * std::min(most, static_cast<double>(idle) / helped);
    }
  }

  // To the next moment at which a thread is done with what it has at hand.
  void step() {
    share_help();
    double us = std::numeric_limits<double>::infinity();
    for (const Thread& t : active_) us = std::min(us, t.left_us / t.gain);
    note_help(us);
    run_.makespan_us += us;
    const bool crowded = static_cast<std::int32_t>(active_.size()) == machine_.threads;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      Thread& t = active_[i];
      if (const NodeId n = node_of(t); n != kNone) {
        node_us_[n] += us;
        if (crowded) crowded_us_[n] += us;
      }
      const bool done = t.left_us / t.gain <= us;
      t.left_us = done ? 0 : t.left_us - us * t.gain;
      if (done) go_on(t);
    }
    std::erase_if(active_, [](const Thread& t) { return t.segment == kNone; });
  }

  // The next node that costs anything; at the segment's end, the first segment that this sets free.
  void go_on(Thread& t) {
    note(t);
    t.since_us = run_.makespan_us;
    const auto n = static_cast<std::int32_t>(segments_[t.segment].nodes.size());
    do ++t.at;
    while (t.at < n && cost_[node_of(t)] <= 0);
    if (t.at < n) {
      t.left_us = cost_[node_of(t)];
      return;
    }
    const std::int32_t segment = t.segment, number = t.number;
    run_.ended[segment] = moment_++;
    t = {};
    for (std::int32_t next : segments_[segment].successors) {
      if (--waits_[next] > 0) continue;
      if (t.segment != kNone) {
        free_.push(next);
        continue;
      }
      run_.began[next] = moment_++;
      t = {next, kNone, machine_.dispatch_us, 1, number, run_.makespan_us};
    }
    is_busy_[static_cast<std::size_t>(number)] = t.segment != kNone;
  }

  const std::vector<Segment>& segments_;
  const std::vector<double>& cost_;
  const std::vector<std::int32_t>& most_threads_;
  const SimulatedMachine machine_;
  std::vector<SimulatedSlice>* const slices_;
  std::vector<bool> is_busy_;           // by thread: it has a segment
  std::vector<std::size_t> last_help_;  // by thread: the slice in which it helped last
  SimulatedRun run_;
  std::int32_t moment_ = 0;
  std::vector<Thread> active_;
  std::vector<std::int32_t> waits_;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_;
  std::vector<double> crowded_us_, node_us_;
};

}  // namespace

SimulatedRun simulate(const std::vector<Segment>& segments, const std::vector<double>& node_cost,
                      const std::vector<std::int32_t>& most_threads, const SimulatedMachine& machine,
                      std::vector<SimulatedSlice>* slices) {
  return Simulation(segments, node_cost, most_threads, machine, slices).run();
}

std::vector<std::int32_t> most_threads_of(const Graph& graph, const std::vector<double>& node_cost, std::int32_t threads) {
  std::vector<std::int32_t> most;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool alone = (node.n_regions > 0 && !node.op->is(kTiled)) || node.op->is(kEffect);
    const double parts = alone ? 1 : std::min(node_cost[n] / kPieceUs, static_cast<double>(threads));
    most.push_back(std::max<std::int32_t>(1, static_cast<std::int32_t>(parts)));
  }
  return most;
}

SimulatedSchedule simulate_schedule(const Plan& plan, const std::vector<double>& node_us, std::int32_t threads) {
  SimulatedSchedule schedule;
  schedule.threads = std::max(threads, 1);
  std::vector<std::int32_t> most = most_threads_of(plan.graph, node_us, schedule.threads);
  for (std::size_t n = 0; n < most.size() && !plan.intra_op.empty(); ++n)
    if (!plan.intra_op[n]) most[n] = 1;
  const SimulatedMachine machine{schedule.threads, plan.segment_rule.dispatch_us};
  schedule.makespan_us = simulate(plan.segments, node_us, most, machine, &schedule.slices).makespan_us;
  return schedule;
}

}  // namespace tapedeck
