// Safetensors files of weights.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void load_twice(const std::string& path) {
  const TensorFile first = load_tensor_file(path), second = load_tensor_file(path);
  if (first.tensors.size() != second.tensors.size() || first.skipped.size() != second.skipped.size())
    fuzz::find("a second read gives other tensors");
  for (const auto& [name, tensor] : first.tensors)
    if (!bit_equal(tensor, second.at(name))) fuzz::find("a second read gives another tensor");
  for (const SkippedTensor& t : first.skipped)
    if (first.tensors.count(t.name)) fuzz::find("a tensor is both read and skipped");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_only_errors([&] { load_twice(file.path()); });
  return 0;
}
