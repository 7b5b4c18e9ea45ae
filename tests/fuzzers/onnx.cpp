// ONNX models, as they are and as steps of training: what is imported verifies, and prints as a text that parses to the same
// text.
#include <tapedeck/capture/onnx/import_onnx.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  OnnxOptions options;
  fuzz::expect_only_errors([&] { fuzz::expect_text_of(import_onnx(file.path()).file.captured); });
  options.train = true;
  options.loss = "mse";
  options.abstract = true;
  fuzz::expect_only_errors([&] { fuzz::expect_text_of(import_onnx(file.path(), options).file.captured); });
  return 0;
}
