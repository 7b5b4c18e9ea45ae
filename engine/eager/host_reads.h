// What a capture refuses, because a replay could not repeat it: above all, reads of tensors on the host. Code that can do
// without the graph of the capture lets such reads pass, and learns of the first one. A capture that watches a program which
// knows nothing of it lets everything pass.
#pragma once

#include <tapedeck/engine/ir/error.h>

#include <string>

namespace tapedeck {

class Recorder;

struct PassedHostReads {
  const Recorder* capture = nullptr;  // the tape of the capture whose reads pass; reads on other tapes are refused
  std::string first;                  // the error that the first read would have been; empty: there was no read
  // All else that a capture refuses passes too, and the code inside runs as it would without a capture. `fault` is the first
  // error that this would have been: no graph can express the run. Reads are no fault, since the program goes on by itself.
  bool everything = false;
  std::string fault = {};
};

// The reads that pass on this thread; null: every capture refuses them.
PassedHostReads*& passed_host_reads();

// Called before the host reads a tensor while `tape`, the tape of a capture, is open. Throws the refusal as a CaptureError, or
// notes it where the read may pass.
void refuse_host_read_on(const Recorder& tape, ErrorText refusal);

// Called before other code that the capture of `tape` cannot express. Throws the refusal as a CaptureError, or notes it where
// everything may pass.
void refuse_in_capture(const Recorder& tape, ErrorText refusal);
bool passes_everything(const Recorder& tape) noexcept;

}  // namespace tapedeck
