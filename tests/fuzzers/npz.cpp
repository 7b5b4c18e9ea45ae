// .npz files.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void load_twice(const std::string& path) {
  const auto first = load_npz(path), second = load_npz(path);
  if (first.size() != second.size()) fuzz::find("a second read gives another number of arrays");
  for (const auto& [name, array] : first)
    if (second.count(name) == 0 || !bit_equal(array, second.at(name))) fuzz::find("a second read gives another array");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_only_errors([&] { load_twice(file.path()); });
  return 0;
}
