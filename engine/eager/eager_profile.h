// Where the time of eager code goes: the kernels that ran, by op and by place in the program.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// One kernel of an eager op. Files and paths are borrowed from the program and from the table of names, and stay valid.
struct EagerEvent {
  const char* op = "";
  Site site;  // the user's call; line 0 if it is not known
  Name path;  // the module that was running; empty outside of modules
  Phase phase = Phase::forward;
  std::int64_t begin_ns = 0, end_ns = 0;  // since the profile began
  std::int64_t bytes = 0;                 // of operands and results together, as if each were dense
};

// Notes the eager kernels of this thread from its construction until it is destroyed or stop() is called:
//     EagerProfile profile;
//     train_step();
//     std::puts(profile.table().c_str());
// Views and the work of the tape are not kernels and are not seen; the line "outside of kernels" of the table is that time.
// Replays of captured steps are not seen (Timeline does that). A profile inside another takes its place until it ends; either
// may end first. An event costs two readings of the clock. Use it on the thread that made it.
class EagerProfile {
 public:
  EagerProfile();
  ~EagerProfile();
  EagerProfile(const EagerProfile&) = delete;

  void stop();  // a second call does nothing
  const std::vector<EagerEvent>& events() const { return events_; }

  // A line for each op, the slowest first: calls, milliseconds, share of the kernels' time, GB/s of its operands and results.
  std::string table() const;
  // Chrome trace events as JSON, a slice for each kernel: ui.perfetto.dev and chrome://tracing open it.
  std::string chrome_trace() const;

 private:
  friend class EagerTimer;
  std::int64_t now() const;

  std::vector<EagerEvent> events_;
  std::int64_t start_ns_ = 0, stopped_ns_ = -1;
  EagerProfile* before_ = nullptr;  // the profile that this one takes the place of
};

// The time of one kernel, for dispatch: does nothing where no profile is on.
class EagerTimer {
 public:
  EagerTimer(const char* op, Site site, std::int64_t bytes);
  ~EagerTimer();
  EagerTimer(const EagerTimer&) = delete;

 private:
  EagerProfile* profile_;
  EagerEvent event_;
};

bool eager_profile_is_on() noexcept;  // on this thread

}  // namespace TAPEDECK_API
