// Builds schedules: boxes from the simulated or the measured run are sorted into lanes, then segments, critical path and the
// axis follow from the boxes alone.
#include <tapedeck/viewer/plan/schedule.h>

#include <tapedeck/capture/planner/segments/simulated_schedule.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/index.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tapedeck::viewer {

namespace {

std::vector<double> costs_of(const PlanModel& model) {
  std::vector<double> us;
  for (NodeId n = 0; n < model.nodes(); ++n) us.push_back(std::max(model.values().node_us(n), 0.0));
  return us;
}

std::string thread_name(std::int32_t lane) { return "thread " + std::to_string(lane + 1); }

std::string value_of(const PlanModel& model, NodeId n) {
  const Node& node = model.graph().nodes[at(n)];
  return node.n_outputs > 0 ? model.name_of(node.first_output) : std::string();
}

std::string from_to(double from, double to) { return "from " + human_us(from) + " to " + human_us(to); }

}  // namespace

Schedule::Schedule(const PlanModel& model, std::int32_t threads)
    : plan_(&model.plan()),
      lanes_(at(std::max(threads, 1))),
      segments_(model.plan().segments.size()),
      place_of_(model.graph().nodes.size(), {kNone, kNone}) {}

Schedule Schedule::planned(const PlanModel& model, std::int32_t threads) {
  const SimulatedSchedule run = simulate_schedule(model.plan(), costs_of(model), threads);
  Schedule schedule(model, run.threads);
  for (const SimulatedSlice& slice : run.slices)
    schedule.add(slice.thread, {slice.node, slice.segment, slice.start_us, slice.end_us});
  schedule.length_us_ = run.makespan_us;
  schedule.finish();
  return schedule;
}

// A slice that names no node, segment or thread of the plan comes from another plan, and is left out.
Schedule Schedule::measured(const PlanModel& model, const Timeline& step, std::int32_t threads) {
  Schedule schedule(model, threads);
  schedule.is_measured_ = true;
  schedule.length_us_ = static_cast<double>(step.run_ns) / 1000;
  for (const Slice& slice : step.slices) {
    const bool known = slice.node >= 0 && slice.node < model.nodes() && slice.thread >= 0 &&
                       slice.thread < schedule.threads() && slice.segment >= 0 && slice.segment < schedule.segments() &&
                       slice.end_ns >= slice.start_ns;
    if (!known) continue;
    schedule.add(slice.thread, {slice.node, slice.segment, static_cast<double>(slice.start_ns) / 1000,
                                static_cast<double>(slice.end_ns) / 1000});
    schedule.length_us_ = std::max(schedule.length_us_, static_cast<double>(slice.end_ns) / 1000);
  }
  schedule.finish();
  return schedule;
}

void Schedule::finish() {
  for (std::int32_t l = 0; l < threads(); ++l) {
    ScheduleLane& lane = lanes_[at(l)];
    std::stable_sort(lane.boxes.begin(), lane.boxes.end(),
                     [](const ScheduleBox& a, const ScheduleBox& b) { return a.start_us < b.start_us; });
    double end = 0;
    for (std::size_t i = 0; i < lane.boxes.size(); ++i) {
      const ScheduleBox& box = lane.boxes[i];
      lane.busy_us += std::max(box.end_us - std::max(box.start_us, end), 0.0);
      end = std::max(end, box.end_us);
      if (box.segment == kNone) continue;  // help with a kernel of another lane
      if (box.node != kNone) place_of_[at(box.node)] = {l, static_cast<std::int32_t>(i)};
      SegmentTimes& segment = segments_[at(box.segment)];
      if (segment.lane == kNone) segment.start_us = box.start_us;
      segment.lane = l;
      segment.start_us = std::min(segment.start_us, box.start_us);
      segment.end_us = std::max(segment.end_us, box.end_us);
    }
    busy_us_ += lane.busy_us;
  }
  find_critical_path();
  make_axis();
  plan_ = nullptr;
}

// Segments stand in an order that their edges allow. `before` is the longest chain that ends with the segment, `behind` the
// longest one that begins with it.
void Schedule::find_critical_path() {
  const std::vector<Segment>& all = plan_->segments;
  std::vector<double> us(all.size(), 0), before(all.size(), 0), behind(all.size(), 0);
  for (const ScheduleLane& lane : lanes_)
    for (const ScheduleBox& box : lane.boxes)
      if (box.segment != kNone) us[at(box.segment)] += box.us();
  for (std::size_t s = 0; s < all.size(); ++s) {
    before[s] += us[s];
    critical_us_ = std::max(critical_us_, before[s]);
    for (const std::int32_t next : all[s].successors) {
      before[at(next)] = std::max(before[at(next)], before[s]);
      SegmentTimes& waiting = segments_[at(next)];
      const bool later = waiting.waited_for == kNone || segments_[at(waiting.waited_for)].end_us < segments_[s].end_us;
      if (later && segments_[s].lane != kNone) waiting.waited_for = static_cast<std::int32_t>(s);
    }
  }
  std::int32_t critical = kNone;
  for (std::size_t s = all.size(); s-- > 0;) {
    for (const std::int32_t next : all[s].successors) behind[s] = std::max(behind[s], behind[at(next)]);
    behind[s] += us[s];
    segments_[s].slack_us = std::max(critical_us_ - (before[s] + behind[s] - us[s]), 0.0);
    if (before[s] == us[s] && behind[s] >= critical_us_ * (1 - 1e-12)) critical = static_cast<std::int32_t>(s);
  }
  // One chain, from its first segment on: the next one is the successor with the longest rest.
  while (critical != kNone) {
    SegmentTimes& on_path = segments_[at(critical)];
    on_path.is_critical = true;
    on_path.slack_us = 0;
    std::int32_t next = kNone;
    for (const std::int32_t s : all[at(critical)].successors)
      if (behind[at(s)] > 0 && (next == kNone || behind[at(s)] > behind[at(next)])) next = s;
    critical = next;
  }
}

void Schedule::make_axis() {
  const std::size_t nodes = place_of_.size();
  std::vector<double> starts(nodes + 1, length_us_);
  for (std::size_t n = nodes; n-- > 0;) {
    const auto [lane, box] = place_of_[n];
    starts[n] = lane == kNone ? starts[n + 1] : std::min(starts[n + 1], lanes_[at(lane)].boxes[at(box)].start_us);
  }
  if (nodes > 0) starts[0] = 0;
  std::vector<double> us;
  for (std::size_t n = 0; n < nodes; ++n) us.push_back(starts[n + 1] - starts[n]);
  axis_ = TimeAxis(us);
}

std::int32_t Schedule::box_at(std::int32_t lane, double us) const {
  const std::vector<ScheduleBox>& boxes = lanes_[at(lane)].boxes;
  const auto found = std::partition_point(boxes.begin(), boxes.end(), [&](const ScheduleBox& box) { return box.end_us <= us; });
  return static_cast<std::int32_t>(found - boxes.begin());
}

// ---- words ----

namespace {

std::vector<std::string> help_sentences(const Schedule& schedule, const PlanModel& model, std::int32_t lane,
                                        const ScheduleBox& box) {
  return {thread_name(lane) + " helps with " + node_title(model.graph(), box.node),
          "It has no segment to run " + from_to(box.start_us, box.end_us) + ", so it takes a part of the kernel that " +
              thread_name(schedule.place_of(box.node).first) + " runs."};
}

// The segment that the lane begins next, from a box on; kNone if none is left.
std::int32_t next_segment(const ScheduleLane& lane, std::int32_t box) {
  for (std::size_t i = at(box); i < lane.boxes.size(); ++i)
    if (lane.boxes[i].segment != kNone) return lane.boxes[i].segment;
  return kNone;
}

}  // namespace

std::vector<std::string> box_sentences(const Schedule& schedule, const PlanModel& model, std::int32_t lane,
                                       std::int32_t index) {
  const ScheduleBox& box = schedule.lanes()[at(lane)].boxes[at(index)];
  if (box.segment == kNone) return help_sentences(schedule, model, lane, box);
  const Segment& segment = model.plan().segments[at(box.segment)];
  const SegmentTimes& times = schedule.segment(box.segment);
  std::vector<std::string> sentences;
  const std::string when = " " + from_to(box.start_us, box.end_us) + ", for " + human_us(box.us());
  if (box.node == kNone) {
    sentences.push_back("Start of segment " + std::to_string(box.segment));
    sentences.push_back("To hand the segment to " + thread_name(lane) + " takes" + when.substr(when.find(", for ") + 5) +
                        " by the estimate.");
  } else {
    const std::string value = value_of(model, box.node);
    sentences.push_back(node_title(model.graph(), box.node) + (value.empty() ? "" : ", makes " + value));
    sentences.push_back("It runs on " + thread_name(lane) + when + (schedule.is_measured() ? ", measured." : ", estimated."));
  }
  const auto others = segment.nodes.size() - (box.node == kNone ? 0 : 1);
  std::string group = "Segment " + std::to_string(box.segment) + " runs as one task";
  if (others > 0) group += fmt::format(", with {} {}node{}", others, box.node == kNone ? "" : "other ", others == 1 ? "" : "s");
  sentences.push_back(group + ", " + from_to(times.start_us, times.end_us) + ".");
  if (times.is_critical)
    sentences.emplace_back("The segment is on the critical path: the step cannot end sooner unless it takes less time.");
  else
    sentences.push_back("It is not on the critical path: it could take " + human_us(times.slack_us) + " more before it were.");
  return sentences;
}

std::vector<std::string> gap_sentences(const Schedule& schedule, const PlanModel& model, std::int32_t lane, double us) {
  const std::vector<ScheduleBox>& boxes = schedule.lanes()[at(lane)].boxes;
  const std::int32_t next = schedule.box_at(lane, us);
  const double from = next == 0 ? 0 : boxes[at(next) - 1].end_us;
  const bool is_last = at(next) == boxes.size();
  const double to = is_last ? schedule.length_us() : boxes[at(next)].start_us;
  std::vector<std::string> sentences{thread_name(lane) + " is idle for " + human_us(to - from)};
  sentences.push_back("It has nothing to run " + from_to(from, to) + ".");
  if (const std::int32_t segment = next_segment(schedule.lanes()[at(lane)], next); segment == kNone) {
    sentences.emplace_back("No segment is left for it until the step ends.");
  } else {
    const std::int32_t waited = schedule.segment(segment).waited_for;
    const bool explains = waited != kNone && schedule.segment(waited).end_us > from;
    std::string why = "Next it begins segment " + std::to_string(segment);
    if (explains) {
      const NodeId last = model.plan().segments[at(waited)].nodes.back();
      why +=
          ", which waits for segment " + std::to_string(waited) + " (its last node is " + node_title(model.graph(), last) + ")";
    }
    sentences.push_back(why + ".");
  }
  return sentences;
}

std::string schedule_summary(const Schedule& schedule) {
  const std::int32_t threads = schedule.threads();
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads") + ", done after " + human_us(schedule.length_us()) +
         " · busy " + percent(schedule.busy_share()) + ", idle " + human_us(schedule.idle_us()) + " · critical path " +
         human_us(schedule.critical_us());
}

namespace {

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string schedule_csv(const Schedule& schedule, const PlanModel& model) {
  std::string csv = "thread,segment,node,op,value,start_us,end_us,critical\n";
  for (std::int32_t l = 0; l < schedule.threads(); ++l)
    for (const ScheduleBox& box : schedule.lanes()[at(l)].boxes) {
      const bool is_node = box.node != kNone;
      const bool helps = box.segment == kNone;
      csv += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{}\n", l + 1, helps ? "help" : std::to_string(box.segment),
                         is_node ? std::to_string(box.node) : "",
                         is_node ? csv_text(model.graph().nodes[at(box.node)].op->name) : "dispatch",
                         is_node ? csv_text(value_of(model, box.node)) : "", box.start_us, box.end_us,
                         !helps && schedule.segment(box.segment).is_critical ? 1 : 0);
    }
  return csv;
}

}  // namespace tapedeck::viewer
