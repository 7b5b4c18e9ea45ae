// .npy files.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void load_twice(const std::string& path) {
  if (!bit_equal(load_npy(path), load_npy(path))) fuzz::find("a second read gives another array");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_only_errors([&] { load_twice(file.path()); });
  return 0;
}
