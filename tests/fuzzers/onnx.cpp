// ONNX models, as they are and as steps of training: what is imported verifies, and prints as a text that parses to the same
// text.
#include <tapedeck/capture/onnx/import_onnx.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void print_and_parse(const Graph& graph) {
  const std::string printed = print(graph);
  try {
    if (print(parse(printed)) != printed) fuzz::find("an imported graph prints as another text once it was parsed");
  } catch (const Error& error) {
    fuzz::find(std::string("an imported graph prints as text that does not parse: ") + error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  OnnxOptions options;
  fuzz::expect_only_errors([&] { print_and_parse(import_onnx(file.path()).file.captured); });
  options.train = true;
  options.loss = "mse";
  options.abstract = true;
  fuzz::expect_only_errors([&] { print_and_parse(import_onnx(file.path(), options).file.captured); });
  return 0;
}
