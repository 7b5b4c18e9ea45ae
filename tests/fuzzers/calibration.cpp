// Calibration files: what parses prints as a text that parses to the same rates.
#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void parse_and_print(std::string_view text) {
  const Calibration calibration = parse_calibration(text);
  try {
    if (parse_calibration(calibration_to_json(calibration)) != calibration) fuzz::find("printed rates parse to other rates");
  } catch (const Error& error) {
    fuzz::find(std::string("printed rates do not parse: ") + error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_only_errors([&] { parse_and_print(fuzz::text_of(data, size)); });
  return 0;
}
