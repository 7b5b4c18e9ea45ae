#include <tapedeck/engine/eager/host_reads.h>

#include <utility>

namespace tapedeck {

PassedHostReads*& passed_host_reads() {
  static thread_local PassedHostReads* reads = nullptr;
  return reads;
}

void refuse_host_read_on(const Recorder& tape, ErrorText refusal) {
  PassedHostReads* const reads = passed_host_reads();
  if (!reads || reads->capture != &tape) throw CaptureError(std::move(refusal));
  if (reads->first.empty()) reads->first = refusal.str();
}

bool passes_everything(const Recorder& tape) noexcept {
  const PassedHostReads* const reads = passed_host_reads();
  return reads && reads->everything && reads->capture == &tape;
}

void refuse_in_capture(const Recorder& tape, ErrorText refusal) {
  if (!passes_everything(tape)) throw CaptureError(std::move(refusal));
  if (std::string& fault = passed_host_reads()->fault; fault.empty()) fault = refusal.str();
}

}  // namespace tapedeck
