// Checked mode: the ops of a running step, compared with its capture one by one as they come.
#pragma once

#include <tapedeck/capture/record/node_mismatch.h>
#include <tapedeck/capture/record/tape_script.h>
#include <tapedeck/engine/eager/recorder.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck {

// Watches one capture. It throws CaptureMismatch from the first op that differs from the script: another op, other operands,
// types or attributes, another constant, or an op too many. The message names both nodes, their index and call sites. O(nodes),
// plus the bytes of constants.
class StreamCheck : public RecordWatch {
 public:
  // When the first difference is thrown: from the op that differs, or from finish(), so that the step runs to its end.
  enum class Throws { at_once, at_the_end };
  explicit StreamCheck(const TapeScript& script, Throws when = Throws::at_once)
      : script_(script), throws_(when), seen_(script.sources.size()) {}
  void recorded(const Recorder& tape, NodeId n) override;
  // Checks at the end of the step that no node is missing, and that the step returned and wrote the values that the script
  // says. Throws CaptureMismatch.
  void finish(const Recorder& tape, const std::vector<Tensor>& outputs);

 private:
  void compare(const Recorder& tape, NodeId n);
  void compare_sources(const Recorder& tape, NodeId n);
  void compare_source(const Recorder& tape, NodeId n, std::size_t operand, ValueId v);
  void check_results(const Recorder& tape, const std::vector<Tensor>& outputs) const;
  void check_writes(const Recorder& tape) const;
  // `what` and `more` are the begin and the end of the message; the sites of `m` are filled in.
  [[noreturn]] void mismatch(const Recorder& tape, NodeId n, const std::string& what, Mismatch m, const std::string& more = "");
  OperandName operand_then(ValueId v) const;
  OperandName operand_now(const Recorder& tape, ValueId v) const;

  const TapeScript& script_;
  const Throws throws_;
  std::vector<bool> seen_;  // by source: whether it was compared
  NodeId next_ = 0;
  std::optional<CaptureMismatch> failure_;  // once a check has failed it stays failed, even if the step catches the error
};

}  // namespace tapedeck
