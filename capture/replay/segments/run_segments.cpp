// The walk over segments.
//
// A segment calls its kernels in order. A segment starts when the last of the segments that it waits for has finished. One
// thread does the same walk on the caller's thread, one segment after the other: it enters no TBB arena, and kernels do not
// spread.
//
//     segments            two threads
//     0 -> 1 -> 3         thread 1:  0  1  3
//     0 -> 2 -> 3         thread 2:     2         3 starts on the thread that finishes last
//
// Faults. A node whose kernel reports a fault, or throws, lowers `stop_at_`. No node above it starts after that, and all nodes
// below it run. So the lowest faulty node is the same for any number of threads. Each segment notes where it stopped. From
// these notes follows whether a state value had been written already.
//
// The thread sanitizer does not see inside TBB, so every hand-over is annotated: `start_` opens a run, runs_[s] hands segment s
// to a task, `finish_` closes the run. The counters of the segments carry the order between one segment and the next.
#include <tapedeck/capture/replay/segments/run_segments.h>

#include <tapedeck/kernels/parallel.h>

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace tapedeck::replay {

namespace {
constexpr std::int32_t kStart = -1, kInOrder = -2;  // tasks that open a run; the others are segments
constexpr double kTooSmallToSpread = 40;  // microseconds: kernels cut their loops into pieces of some 20 (kernels/parallel.h)
}  // namespace

// ---- once ----

SegmentWalk::SegmentWalk(const Plan& plan, Program& program, int threads)
    : instructions_(program.instructions.data()),
      ranges_(program.segments.data()),
      runs_(std::make_unique<SegmentRun[]>(plan.segments.size())),
      program_(program),
      threads_(threads) {
  prepare_segments(plan, program);
  find_state_writers(plan);
  serial_ = threads_.count() == 1 || nothing_to_share(plan);
}

// By the model; a node that costs nothing there still takes a moment.
double SegmentWalk::cost_of(const Segment& segment) {
  return segment.cost_us + 0.05 * static_cast<double>(segment.nodes.size());
}

void SegmentWalk::prepare_segments(const Plan& plan, Program& program) {
  const std::size_t n = plan.segments.size();
  for (std::size_t s = 0; s < n; ++s) {
    const Segment& segment = plan.segments[s];
    runs_[s].successors = segment.successors.data();
    runs_[s].n_successors = static_cast<std::int32_t>(segment.successors.size());
    for (std::int32_t next : segment.successors) runs_[next].waiting = ++runs_[next].waits_for;
    total_cost_ += cost_of(segment);
  }
  auto writer = program.state_writers.begin();
  for (std::size_t s = 0; s < n; ++s) {
    if (runs_[s].waits_for == 0) roots_.push_back(static_cast<std::int32_t>(s));
    const IndexRange range = program.segments[s];
    runs_[s].stopped = range.end;
    for (std::int32_t i = range.first; i < range.end; ++i) program.instructions[i].call.fault = &runs_[s].fault;
    writer = std::lower_bound(writer, program.state_writers.end(), range.first);
    first_writer_.push_back(writer == program.state_writers.end() ? range.end : std::min(*writer, range.end));
  }
}

void SegmentWalk::find_state_writers(const Plan& plan) {
  const Graph& g = plan.graph;
  std::vector<StateWriter> maker(g.nodes.size());
  for (std::int32_t s = 0; s < count(); ++s)
    for (std::int32_t i = ranges_[s].first; i < ranges_[s].end; ++i) maker[instructions_[i].node] = {s, i};
  state_writers_.resize(static_cast<std::size_t>(g.n_state));
  for (const Update& u : g.updates)
    if (u.value != u.state) state_writers_[u.state - g.n_inputs] = maker[g.values[u.value].node];
}

// The segments follow one another and their nodes do not spread: a second thread would wake up for nothing.
bool SegmentWalk::nothing_to_share(const Plan& plan) const {
  if (roots_.size() > 1) return false;
  for (const Segment& segment : plan.segments) {
    if (segment.successors.size() > 1) return false;
    for (const NodeId n : segment.nodes)
      if (const Node& node = plan.graph.nodes[n]; node.op->is(kEffect) || (node.n_regions > 0 && !node.op->is(kTiled)))
        return false;
    if (segment.cost_us < kTooSmallToSpread) continue;
    for (const NodeId n : segment.nodes)
      if (plan.intra_op.empty() || plan.intra_op[n]) return false;
  }
  return true;
}

// ---- the walk ----

void SegmentWalk::limit(const IndexRange* ranges) {
  ranges_ = ranges ? ranges : program_.segments.data();
  if (!ranges) return;
  for (std::int32_t s = 0; s < count(); ++s) runs_[s].stopped = ranges[s].end;
}

void SegmentWalk::run(SegmentObserver* observer, IndexRange in_order) {
  observer_ = observer;
  in_order_ = in_order;
  const bool ordered = in_order_.end > in_order_.first;
  if (serial_) {
    const kernels::OneThreadScope alone;
    if (!ordered) in_order_ = {0, count()};
    for (std::int32_t s = in_order_.first; s < in_order_.end; ++s) run_segment(s);
  } else {
    kernels::annotate_release(&start_);
    threads_.run([](void* self, std::int32_t item) { static_cast<SegmentWalk*>(self)->hand_out(item); }, this,
                 ordered ? kInOrder : kStart);
    kernels::annotate_acquire(&finish_);
  }
}

// A task of a run.
void SegmentWalk::hand_out(std::int32_t item) noexcept {
  kernels::annotate_acquire(&start_);
  if (item == kStart) return run_roots();
  if (item != kInOrder) return run_from(item, kNone);
  for (std::int32_t s = in_order_.first; s < in_order_.end; ++s) run_segment(s);
  kernels::annotate_release(&finish_);
}

void SegmentWalk::run_roots() noexcept {
  std::int32_t kept = kNone;
  for (std::size_t i = 1; i < roots_.size(); ++i) spawn(roots_[i], kept);
  if (!roots_.empty()) {
    kernels::annotate_release(&runs_[roots_[0]]);
    run_from(roots_[0], kept);
  }
}

// Hands a segment to an idle thread. When there is no memory for a task, the segment goes into the list of segments that the
// calling thread runs itself; `kept` is the first of them.
void SegmentWalk::spawn(std::int32_t segment, std::int32_t& kept) noexcept {
  kernels::annotate_release(&runs_[segment]);
  if (!threads_.spawn(segment)) runs_[segment].later = std::exchange(kept, segment);
}

// Runs a segment that waits for nothing any more, then the first segment that it sets free, and so on; then the segments that
// this thread keeps. Idle threads take the other segments that are free.
void SegmentWalk::run_from(std::int32_t segment, std::int32_t kept) noexcept {
  kernels::annotate_acquire(&runs_[segment]);
  for (;;) {
    run_segment(segment);
    const SegmentRun& done = runs_[segment];
    std::int32_t next = kNone;
    for (std::int32_t i = 0; i < done.n_successors; ++i) {
      const std::int32_t s = done.successors[i];
      if (!runs_[s].free()) continue;
      if (next == kNone)
        next = s;
      else
        spawn(s, kept);
    }
    if (next == kNone && kept != kNone) next = std::exchange(kept, runs_[kept].later);
    if (next == kNone) break;
    segment = next;
  }
  kernels::annotate_release(&finish_);
}

void SegmentWalk::run_segment(std::int32_t segment) noexcept {
  observer_ ? observer_->run_segment(segment) : run_instructions(segment);
}

void SegmentWalk::run_instructions(std::int32_t segment) noexcept {
  const IndexRange range = ranges_[segment];
  for (std::int32_t i = range.first; i < range.end; ++i)
    if (!run_instruction(segment, i)) return;
}

bool SegmentWalk::run_instruction(std::int32_t segment, std::int32_t i) noexcept {
  const Instruction& instruction = instructions_[i];
  SegmentRun& run = runs_[segment];
  if (instruction.node > stop_at_.load(std::memory_order_relaxed)) {
    run.stopped = i;
    return false;
  }
  try {
    if (serial_ || instruction.intra_op) {
      instruction.kernel(instruction.call);
    } else {
      const kernels::OneThreadScope alone;
      instruction.kernel(instruction.call);
    }
  } catch (...) {
    note_fault(segment, instruction.node, i + 1, std::current_exception());
    return false;
  }
  if (!run.fault.what.load(std::memory_order_relaxed)) return true;
  note_fault(segment, instruction.node, i + 1, nullptr);
  return false;
}

// ---- faults, and state that was written ----

void SegmentWalk::note_fault(std::int32_t segment, NodeId node, std::int32_t stopped, std::exception_ptr thrown) noexcept {
  SegmentRun& run = runs_[segment];
  run.stopped = stopped;
  run.faulty = node;
  run.thrown = std::move(thrown);
  std::int32_t lowest = stop_at_.load(std::memory_order_relaxed);
  while (node < lowest && !stop_at_.compare_exchange_weak(lowest, node, std::memory_order_relaxed)) {
  }
}

Fault SegmentWalk::take_fault() {
  Fault fault;
  fault.node = stop_at_.exchange(kNoStop, std::memory_order_relaxed);
  for (std::int32_t s = 0; s < count(); ++s) {
    if (runs_[s].faulty != fault.node) continue;
    fault.thrown = runs_[s].thrown;
    if (!fault.thrown) fault.reported = fmt::format("{}: {}", runs_[s].fault.what.load(), runs_[s].fault.value.load());
  }
  return fault;
}

bool SegmentWalk::wrote_state() const {
  for (std::int32_t s = 0; s < count(); ++s)
    if (first_writer_[s] < runs_[s].stopped && first_writer_[s] < program_.segments[s].end) return true;
  return false;
}

bool SegmentWalk::has_written(std::int32_t slot) const {
  const auto& [segment, i] = state_writers_[slot];
  return i != kNone && ranges_[segment].first <= i && i < runs_[segment].stopped;
}

void SegmentWalk::clear_faults() {
  forget_stops();
  for (std::int32_t s = 0; s < count(); ++s) {
    SegmentRun& run = runs_[s];
    run.faulty = kNone;
    run.thrown = nullptr;
    run.fault.what = nullptr;
    run.fault.value = 0;
  }
}

void SegmentWalk::forget_stops() {
  for (std::int32_t s = 0; s < count(); ++s) runs_[s].stopped = program_.segments[s].end;
}

}  // namespace tapedeck::replay
