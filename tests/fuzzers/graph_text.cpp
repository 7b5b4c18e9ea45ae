// Text -> parse -> verify. What parses must print as a text that parses to the same text.
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void parse_and_print(std::string_view text) {
  const Graph graph = parse(text, "fuzz");
  verify(graph);
  const std::string printed = print(graph);
  std::string again;
  try {
    again = print(parse(printed, "printed"));
  } catch (const Error& error) {
    fuzz::find(std::string("a printed graph does not parse: ") + error.what());
  }
  if (again != printed) fuzz::find("a printed graph prints otherwise once it is parsed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_only_errors([&] { parse_and_print(fuzz::text_of(data, size)); });
  return 0;
}
