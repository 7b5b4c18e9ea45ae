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

class Simulation {
 public:
  Simulation(const std::vector<Segment>& segments, const std::vector<double>& node_cost,
             const std::vector<std::int32_t>& most_threads, const SimulatedMachine& machine)
      : segments_(segments),
        cost_(node_cost),
        most_threads_(most_threads),
        machine_(machine),
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
  };

  NodeId node_of(const Thread& t) const { return t.at == kNone ? kNone : segments_[t.segment].nodes[t.at]; }

  void begin(std::int32_t segment) {
    run_.began[segment] = moment_++;
    active_.push_back({segment, kNone, machine_.dispatch_us, 1});
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
    const auto n = static_cast<std::int32_t>(segments_[t.segment].nodes.size());
    do ++t.at;
    while (t.at < n && cost_[node_of(t)] <= 0);
    if (t.at < n) {
      t.left_us = cost_[node_of(t)];
      return;
    }
    const std::int32_t segment = t.segment;
    run_.ended[segment] = moment_++;
    t = {};
    for (std::int32_t next : segments_[segment].successors) {
      if (--waits_[next] > 0) continue;
      if (t.segment != kNone) {
        free_.push(next);
        continue;
      }
      run_.began[next] = moment_++;
      t = {next, kNone, machine_.dispatch_us, 1};
    }
  }

  const std::vector<Segment>& segments_;
  const std::vector<double>& cost_;
  const std::vector<std::int32_t>& most_threads_;
  const SimulatedMachine machine_;
  SimulatedRun run_;
  std::int32_t moment_ = 0;
  std::vector<Thread> active_;
  std::vector<std::int32_t> waits_;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_;
  std::vector<double> crowded_us_, node_us_;
};

}  // namespace

SimulatedRun simulate(const std::vector<Segment>& segments, const std::vector<double>& node_cost,
                      const std::vector<std::int32_t>& most_threads, const SimulatedMachine& machine) {
  return Simulation(segments, node_cost, most_threads, machine).run();
}

}  // namespace tapedeck
