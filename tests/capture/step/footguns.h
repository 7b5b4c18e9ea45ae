// Helpers of the footgun tests. In these cases other systems have silently given wrong results. Here the result must be
// right, or a typed error must name the op and its call site. The oracle is the same function called eagerly.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

// "FILE:LINE" of a line of the calling test.
inline std::string here(int line, const std::string& file = __builtin_FILE()) {
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
}

inline Floats values(const Tensor& t) { return t.to_vector<float>(); }

// The message with which the step refuses the call. Folders are left out of file names.
inline std::string refused(CapturedStep& step, const Tensors& in) {
  return testing::without_folders(testing::message_of<CaptureError>([&] { step(in); }));
}

}  // namespace tapedeck
