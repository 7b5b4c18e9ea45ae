// Lists of buffers as CSV -> offsets -> CSV. The list with its offsets must parse again, with the same offsets.
#include <tapedeck/capture/planner/place/buffers_csv.h>
#include <tapedeck/capture/planner/place/place.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

using namespace tapedeck;

namespace {

void parse_and_print(std::string_view text) {
  const BufferList list = parse_buffers(text, "fuzz");
  for (std::size_t i = 0; i < list.buffers.size(); ++i) shown_id(list, i);
  Offsets offsets;
  for (std::size_t i = 0; i < list.buffers.size(); ++i)
    offsets.offsets.push_back(static_cast<std::int64_t>(i) * (std::int64_t{1} << 40));
  for (std::size_t i = 0; i < list.buffers.size(); ++i) offsets.offsets[i] -= offsets.offsets[i] % list.buffers[i].alignment;
  const std::string printed = print_buffers(list, offsets);
  try {
    const BufferList again = parse_buffers(printed, "printed");
    if (again.buffers.size() != list.buffers.size()) fuzz::find("a printed list has another number of buffers");
    for (std::size_t i = 0; i < list.buffers.size(); ++i)
      if (again.buffers[i].fixed != offsets.offsets[i]) fuzz::find("a printed list has other offsets");
  } catch (const Error& error) {
    fuzz::find(std::string("a printed list does not parse: ") + error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_only_errors([&] { parse_and_print(fuzz::text_of(data, size)); });
  return 0;
}
