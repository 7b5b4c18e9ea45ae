// Reads of tensors on the host inside a capture. A capture refuses them, because a replay could not repeat them. Code that can
// do without the graph of the capture lets them pass, and learns of the first one.
#pragma once

#include <tapedeck/engine/ir/error.h>

#include <string>

namespace tapedeck {

class Recorder;

struct PassedHostReads {
  const Recorder* capture = nullptr;  // the tape of the capture whose reads pass; reads on other tapes are refused
  std::string first;                  // the error that the first read would have been; empty: there was no read
};

// The reads that pass on this thread; null: every capture refuses them.
PassedHostReads*& passed_host_reads();

// Called before the host reads a tensor while `tape`, the tape of a capture, is open. Throws the refusal as a CaptureError, or
// notes it where the read may pass.
void refuse_host_read_on(const Recorder& tape, ErrorText refusal);

}  // namespace tapedeck
