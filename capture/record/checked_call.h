// Checked mode: the ops of a running step, compared with its capture one by one as they come.
#pragma once

#include <tapedeck/capture/record/tape_script.h>
#include <tapedeck/engine/eager/recorder.h>

#include <string>
#include <vector>

namespace tapedeck {

// Watches one capture. Throws CaptureError from the first op that is not what the script says - another op, other operands,
// types, attributes, another constant, one too many - naming both nodes, their index and call sites. O(nodes), plus the bytes
// of constants.
class StreamCheck : public RecordWatch {
 public:
  explicit StreamCheck(const TapeScript& script) : script_(script), seen_(script.sources.size()) {}
  void recorded(const Recorder& tape, NodeId n) override;
  // The end of the step: whether nodes are missing, and whether it returned and wrote what the script says.
  void finish(const Recorder& tape, const std::vector<Tensor>& outputs);

 private:
  void compare(const Recorder& tape, NodeId n);
  void compare_sources(const Recorder& tape, NodeId n);
  void compare_source(const Recorder& tape, NodeId n, std::size_t operand, ValueId v);
  [[noreturn]] void mismatch(const Recorder& tape, NodeId n, const std::string& what);

  const TapeScript& script_;
  std::vector<bool> seen_;  // by source: compared already
  NodeId next_ = 0;
  std::string failure_;  // a failed check stays failed, whatever the step does with the error
};

}  // namespace tapedeck
