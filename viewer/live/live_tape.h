// The tape of a running program as the viewer has it so far: calls of ops, the curve of memory, steps and captured steps. Knows
// neither Qt nor ImGui nor files, and is not thread safe: live_source.h guards it.
#pragma once

#include <tapedeck/capture/live/live_records.h>
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace tapedeck::viewer {

// A call of an op. Texts are numbers of LiveTape::text().
struct LiveOp {
  std::uint64_t index = 0;
  std::int64_t time_ns = 0, live = 0, bytes = 0;
  std::uint32_t op = 0, path = 0, file = 0, types = 0, thread = 0;
  std::int32_t line = 0;
  Phase phase = Phase::forward;
  std::uint8_t flags = 0;
};

// The lowest and the highest bytes of the calls from `index` to the next point.
struct LivePoint {
  std::uint64_t index = 0;
  std::int64_t lowest = 0, highest = 0;
};

struct LiveStep {
  std::uint64_t index = 0, step = 0;
};

struct LiveCapture {
  std::string file;  // of the folder; empty: there is none
  std::string message;
};

struct LiveModule {
  std::string name;  // the first two levels of the module path
  std::int64_t calls = 0, bytes = 0;
};

class LiveTape {
 public:
  static constexpr std::size_t kMostRows = 2'000'000, kMostPoints = 1 << 21;

  void add(const live::Record& record);

  // The calls that are kept: all, or the last kMostRows to half of that.
  const std::deque<LiveOp>& ops() const { return ops_; }
  const std::string& text(std::uint32_t id) const { return texts_[id < texts_.size() ? id : 0]; }
  const std::vector<LiveStep>& steps() const { return steps_; }
  const std::vector<LiveCapture>& captures() const { return captures_; }
  std::vector<LiveModule> modules() const;  // the most bytes first

  // The curve. Each point holds until the next one begins; the last one until end().
  const std::vector<LivePoint>& points() const { return points_; }
  std::uint64_t end() const { return next_index_; }
  // The lowest and the highest bytes of the calls in [from, to); both -1 if there are none.
  LivePoint extremes(double from, double to) const;
  LivePoint peak() const { return peak_; }
  // The window shows all bytes of this program in this unit. It is chosen by the highest bytes so far.
  ByteUnit unit() const { return ByteUnit::of(std::max(peak_.highest, replay_peak_)); }

  std::int64_t live() const { return live_; }
  std::int64_t dropped() const { return dropped_; }  // by the program, whose buffer was full
  std::int64_t replays() const { return replays_; }
  std::uint64_t step() const { return step_; }
  std::int64_t replay_peak() const { return replay_peak_; }
  bool has_steps() const { return step_ > 0 || replays_ > 0; }
  bool ended() const { return ended_; }
  // Per second, over the last two seconds of the program.
  double calls_per_second() const { return rate(&Sample::calls); }
  double steps_per_second() const { return rate(&Sample::steps); }

 private:
  struct Sample {
    std::int64_t time_ns = 0, calls = 0, steps = 0;
  };
  void add_one(const live::TextRecord& r);
  void add_one(const live::OpRecord& r);
  void add_one(const live::StepRecord& r);
  void add_one(const live::DroppedRecord& r);
  void add_one(const live::ReplayRecord& r);
  void add_one(const live::CapturedRecord& r);
  void add_one(const live::EndedRecord& r);
  void add_one(const live::PastRecord& r);
  void append(const LivePoint& point);
  void add_point(std::uint64_t index, std::int64_t lowest, std::int64_t highest);
  void halve_points();
  void sample(std::int64_t time_ns);
  double rate(std::int64_t Sample::*of) const;
  std::uint32_t id_of_types(const live::OpRecord& r);
  std::size_t point_at(double index) const;
  LivePoint extremes_of_points(std::size_t first, std::size_t last) const;

  std::vector<std::string> texts_{""};
  std::unordered_map<std::string, std::uint32_t> types_;  // as texts
  std::deque<LiveOp> ops_;
  std::vector<LivePoint> points_;
  std::vector<LivePoint> blocks_;  // of kBlock points each
  std::vector<LiveStep> steps_;
  std::vector<LiveCapture> captures_;
  std::vector<LiveModule> by_path_;  // by the number of the path
  std::deque<Sample> samples_;
  LivePoint peak_{0, -1, -1};
  std::uint64_t next_index_ = 0, step_ = 0;
  std::int64_t live_ = 0, dropped_ = 0, replays_ = 0, replay_peak_ = 0;
  bool ended_ = false;
};

// The result types, the place and the module path of a call as people read them.
std::string site_text(const LiveTape& tape, const LiveOp& op);

// Writes the calls as CSV. Throws FileError.
void write_live_csv(const LiveTape& tape, const std::string& path);

}  // namespace tapedeck::viewer
