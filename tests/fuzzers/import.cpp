// Graphs and traces of other programs, compressed or not: what is imported verifies, and prints as a text that parses to the
// same text.
#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/capture/import/graph_json.h>
#include <tapedeck/capture/import/simrd.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

constexpr std::size_t kMostBytes = 1 << 20;

void import_both(std::string bytes) {
  const std::string text = unpacked_text(std::move(bytes), "fuzz", kMostBytes);
  for (const ImportedResults results : {ImportedResults::held, ImportedResults::returned}) {
    fuzz::expect_only_errors([&] { fuzz::expect_text_of(import_graph_json(text, "fuzz", results)); });
    fuzz::expect_only_errors([&] {
      const ImportedTrace trace = import_simrd(text, "fuzz", results);
      if (trace.held_end_bytes < 0 || trace.held_end_bytes > trace.held_peak_bytes)
        fuzz::find("a trace holds more at its end than ever");
      fuzz::expect_text_of(trace.graph);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_only_errors([&] { import_both(std::string(fuzz::text_of(data, size))); });
  return 0;
}
