// What the tests of footguns share. What has gone silently wrong elsewhere, here is right, or a typed error that names op and
// call site. The oracle is the same function called eagerly.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

// FILE:LINE of a line of the test that asks.
inline std::string here(int line, const std::string& file = __builtin_FILE()) {
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
}

inline Floats values(const Tensor& t) { return t.to_vector<float>(); }

// What the step refuses a call with. The site of an error is the user's line, whatever folder the file is in.
inline std::string refused(CapturedStep& step, const Tensors& in) {
  return testing::without_folders(testing::message_of<CaptureError>([&] { step(in); }));
}

}  // namespace tapedeck
