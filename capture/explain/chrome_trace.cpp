// Writes the events one by one: first the tracks of the threads with segments and nodes, then the arrows from recomputed nodes
// to their readers, then the counter of live bytes.
#include <tapedeck/capture/explain/chrome_trace.h>

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/explain/live_blocks.h>
#include <tapedeck/capture/formats/json.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr int kProcess = 1;
constexpr int kSteps = 1;  // the track of runs; threads follow
constexpr int track_of(std::int32_t thread) { return kSteps + 1 + thread; }

// 1001 / 1000.0 * 1000 is less than 1001, and Perfetto cuts: the next double is as short a time and survives.
double microseconds(std::int64_t ns) {
  double us = static_cast<double>(ns) / 1000.0;
  if (static_cast<std::int64_t>(us * 1000.0) < ns) us = std::nextafter(us, std::numeric_limits<double>::infinity());
  return us;
}

class Trace {
 public:
  Trace(const Plan& plan, std::span<const Timeline> runs)
      : plan_(plan), runs_(runs), costs_(node_costs(plan.graph)), readers_(plan.graph) {}

  std::string text() {
    out_.open('{').key("displayTimeUnit").value("ns");
    about();
    out_.key("traceEvents").open('[');
    names();
    std::int64_t origin = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      run(i, origin);
      origin += runs_[i].run_ns;
    }
    out_.close(']').close('}');
    return out_.take() + "\n";
  }

 private:
  void about() {
    out_.line().key("otherData").open('{');
    out_.key("graph").value(plan_.graph.name.view());
    out_.key("planned_peak_bytes").value(plan_.peak_bytes);
    out_.key("external_bytes").value(plan_.external_bytes);
    out_.key("arena_bytes").value(plan_.arena_bytes);
    out_.key("lower_bound_bytes").value(plan_.lower_bound_bytes);
    out_.key("costs").value(plan_.costs);
    out_.close('}').line();
  }

  // The fields that every event has. Leaves the object open.
  JsonWriter& event(const char* phase, std::string_view name, int track, std::int64_t at_ns) {
    out_.line().open('{').key("ph").value(phase).key("name").value(name).key("pid").value(kProcess).key("tid").value(track);
    return out_.key("ts").value(microseconds(at_ns));
  }

  void metadata(const char* what, int track, const char* key, std::string_view value) {
    event("M", what, track, 0).key("args").open('{').key(key).value(value).close('}').close('}');
  }

  void names() {
    std::int32_t threads = 1;
    for (const Timeline& t : runs_)
      for (const Slice& s : t.slices)
        if (s.node != kNone) threads = std::max(threads, s.thread + 1);
    metadata("process_name", kSteps, "name", "tapedeck " + plan_.graph.name.str());
    metadata("thread_name", kSteps, "name", "steps");
    for (std::int32_t t = 0; t < threads; ++t) metadata("thread_name", track_of(t), "name", "thread " + std::to_string(t));
    for (int t = kSteps; t < track_of(threads); ++t)
      event("M", "thread_sort_index", t, 0).key("args").open('{').key("sort_index").value(t).close('}').close('}');
  }

  void run(std::size_t index, std::int64_t origin) {
    const Timeline& t = runs_[index];
    event("X", "step " + std::to_string(index), kSteps, origin)
        .key("dur")
        .value(microseconds(t.run_ns))
        .key("cat")
        .value("step")
        .close('}');
    std::vector<const Slice*> slices;
    ran_.assign(plan_.graph.nodes.size(), nullptr);
    seen_from_.assign(plan_.graph.nodes.size(), kNone);
    for (const Slice& s : t.slices) {
      if (s.node == kNone) continue;
      slices.push_back(&s);
      ran_[s.node] = &s;
    }
    std::stable_sort(slices.begin(), slices.end(), [](const Slice* a, const Slice* b) {
      return a->thread != b->thread ? a->thread < b->thread : a->start_ns < b->start_ns;
    });
    // One thread runs one segment at a time, so a segment is a stretch of a thread's slices.
    for (std::size_t first = 0, end = 0; first < slices.size(); first = end) {
      while (end < slices.size() && slices[end]->segment == slices[first]->segment &&
             slices[end]->thread == slices[first]->thread)
        ++end;
      segment({slices.data() + first, end - first}, origin);
    }
    flows(origin);
    counter(t, origin);
  }

  void segment(std::span<const Slice* const> slices, std::int64_t origin) {
    const Slice& first = *slices.front();
    slice("segment " + std::to_string(first.segment), "segment", first, slices.back()->end_ns, origin).key("args").open('{');
    out_.key("segment").value(first.segment).key("nodes").value(static_cast<std::int64_t>(slices.size()));
    if (first.segment >= 0 && first.segment < static_cast<std::int32_t>(plan_.segments.size()))
      out_.key("planned_us").value(plan_.segments[first.segment].cost_us);
    out_.close('}').close('}');
    for (const Slice* s : slices) node(*s, origin);
  }

  JsonWriter& slice(std::string_view name, const char* category, const Slice& at, std::int64_t end_ns, std::int64_t origin) {
    event("X", name, track_of(at.thread), origin + at.start_ns).key("dur").value(microseconds(end_ns - at.start_ns));
    return out_.key("cat").value(category);
  }

  void node(const Slice& s, std::int64_t origin) {
    const Node& node = plan_.graph.nodes[s.node];
    const Origin& from = node.origin;
    slice(node.op->name, from.clone ? "recompute" : phase_name(from.phase), s, s.end_ns, origin).key("args").open('{');
    out_.key("node").value(plan_.graph.node_text(s.node)).key("id").value(s.node).key("segment").value(s.segment);
    out_.key("phase").value(phase_name(from.phase));
    if (!from.path.empty()) out_.key("path").value(from.path.view());
    if (!from.site.empty()) out_.key("site").value(from.site.view());
    if (!from.of.empty()) out_.key("recomputes").value("%" + from.of.str());
    out_.key("bytes_made").value(bytes_made(node)).key("estimated_us").value(costs_[s.node]);
    out_.close('}').close('}');
  }

  std::int64_t bytes_made(const Node& node) const {
    std::int64_t bytes = 0;
    for (const Value& v : plan_.graph.output_values(node)) bytes += v.type.bytes();
    return bytes;
  }

  // Arrows bind to the slice around their ends, so both stand in the middle of theirs.
  void flows(std::int64_t origin) {
    for (NodeId n = 0; n < plan_.graph.node_count(); ++n) {
      if (!plan_.graph.nodes[n].origin.clone || !ran_[n]) continue;
      for (NodeId reader : readers_that_ran(n)) {
        const std::int64_t id = next_flow_++;
        arrow("s", *ran_[n], id, origin);
        out_.close('}');
        arrow("f", *ran_[reader], id, origin).key("bp").value("e").close('}');
      }
    }
  }

  JsonWriter& arrow(const char* phase, const Slice& s, std::int64_t id, std::int64_t origin) {
    event(phase, "recompute", track_of(s.thread), origin + s.start_ns + (s.end_ns - s.start_ns) / 2);
    return out_.key("cat").value("recompute").key("id").value(id);
  }

  bool joins(const Node& node) const {
    const auto operands = plan_.graph.inputs(node);
    return std::any_of(operands.begin(), operands.end(), [&](ValueId v) {
      return plan_.values[v].reason == Reason::part && plan_.values[v].other == node.first_output;
    });
  }

  // In the order of nodes. The search goes on through windows and through joins of parts that lie in place, which have no slice
  // of their own. It looks at each node once.
  std::vector<NodeId> readers_that_ran(NodeId clone) {
    std::vector<NodeId> found, waiting = {clone};
    while (!waiting.empty()) {
      const Node& node = plan_.graph.nodes[waiting.back()];
      waiting.pop_back();
      for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
        for (NodeId reader : readers_.of(v)) {
          if (std::exchange(seen_from_[reader], clone) == clone) continue;
          const Node& by = plan_.graph.nodes[reader];
          if (ran_[reader])
            found.push_back(reader);
          else if (by.n_outputs > 0 && (plan_.values[by.first_output].reason == Reason::alias || joins(by)))
            waiting.push_back(reader);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  void counter(const Timeline& t, std::int64_t origin) {
    const LiveBlocks live = live_blocks(plan_, t);
    std::int64_t bytes = plan_.external_bytes;
    count(origin, bytes);
    for (const LiveEvent& e : live.events) {
      bytes += e.begins ? live.blocks[e.block].bytes : -live.blocks[e.block].bytes;
      count(origin + e.at_ns, bytes);
    }
  }

  void count(std::int64_t at_ns, std::int64_t bytes) {
    event("C", "live bytes", kSteps, at_ns).key("args").open('{').key("bytes").value(bytes).close('}').close('}');
  }

  const Plan& plan_;
  std::span<const Timeline> runs_;
  std::vector<double> costs_;
  Readers readers_;
  std::vector<const Slice*> ran_;  // by node, in the run at hand
  std::vector<NodeId> seen_from_;  // by node: the last clone whose readers were searched there, in the run at hand
  std::int64_t next_flow_ = 1;
  JsonWriter out_;
};

}  // namespace

std::string chrome_trace(const Plan& plan, std::span<const Timeline> runs) { return Trace(plan, runs).text(); }

}  // namespace tapedeck
