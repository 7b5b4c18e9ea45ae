// The next step of a program that knows nothing of it, as a captured graph.
//
// The capture lies between two calls of next_step() on one thread. It must not disturb the program: everything that a capture
// refuses passes, and is a reason to give the graph up. It opens only where no gradient history reaches from before into the
// step, and closes only where none would be lost.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/eager/host_reads.h>

#include <memory>
#include <optional>
#include <string>

namespace tapedeck::live {

class StepCapture {
 public:
  // Why no capture can open here and now; empty: it can.
  static std::string obstacle();
  StepCapture();   // REQUIRES: no obstacle
  ~StepCapture();  // without finish(): gives the graph up

  // Whether it may close here: no tensor that lives on needs what the tape knows of gradients.
  bool can_finish() const;
  // Closes the capture. Empty if no graph can express the step; `problem` says why. Never throws.
  std::optional<Captured> finish(std::string* problem) noexcept;
  NodeId nodes() const;                                         // so far
  bool read_on_host() const { return !passed_.first.empty(); }  // a replay would not see what the program did with it

 private:
  std::unique_ptr<Capture> capture_;
  PassedHostReads passed_;
  const Recorder* tape_ = nullptr;
};

// The largest files of a captured step hold the bytes of its inputs and its state, too.
inline constexpr std::int64_t kMostSavedBytes = 64 << 20;

// Writes a file of the captured step, with its values if they are few; what it says is a sentence about it. Throws what
// save_tape() throws.
std::string save_captured(const std::string& path, const Captured& captured, const Plan* plan, bool with_values);

}  // namespace tapedeck::live
