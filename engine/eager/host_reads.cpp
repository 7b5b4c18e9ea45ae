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

}  // namespace tapedeck
