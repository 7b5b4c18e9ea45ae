// Safetensors files of weights.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void load_twice(const std::string& path) {
  const std::map<std::string, Tensor> first = load_safetensors(path), second = load_safetensors(path);
  if (first.size() != second.size()) fuzz::find("a second read gives other tensors");
  for (const auto& [name, tensor] : first)
    if (!bit_equal(tensor, second.at(name))) fuzz::find("a second read gives another tensor");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_only_errors([&] { load_twice(file.path()); });
  return 0;
}
