// .tape files whose checksums are right: a mutation takes a file apart, changes one part, and seals it again, so that what lies
// behind the checksums is reached. What loads, and has a small plan, is replayed and compared with eager execution.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/tests/capture/sealed_tape.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>

using namespace tapedeck;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

void mutate(std::string* text) {
  const std::size_t size = text->size();
  const std::size_t most = size + 64;
  text->resize(most);
  text->resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text->data()), size, most));
}

// Changes the bytes of one tensor: a graph, a plan, a profile, data.
void mutate_part(SealedTape* tape, std::mt19937& random) {
  if (tape->tensors.empty()) return;
  const auto part = std::next(tape->tensors.begin(), static_cast<std::ptrdiff_t>(random() % tape->tensors.size()));
  mutate(&part->second.bytes);
  if (part->second.type.dtype == DType::u8)
    part->second.type = {DType::u8, {static_cast<std::int64_t>(part->second.bytes.size())}};
}

void mutate_metadata(SealedTape* tape, std::mt19937& random) {
  if (tape->metadata.empty()) return;
  const auto entry = std::next(tape->metadata.begin(), static_cast<std::ptrdiff_t>(random() % tape->metadata.size()));
  mutate(&entry->second);
}

void drop_part(SealedTape* tape, std::mt19937& random) {
  if (tape->tensors.empty()) return;
  tape->tensors.erase(std::next(tape->tensors.begin(), static_cast<std::ptrdiff_t>(random() % tape->tensors.size())));
}

// Changes the header and writes its checksum anew.
std::string mutate_header(std::string file) {
  constexpr std::size_t kEnd = tape_file::kDigitsAt + tape_file::kDigits;
  std::uint64_t length = 0;
  if (file.size() < kEnd) return file;
  std::memcpy(&length, file.data(), 8);
  if (length > file.size() - 8 || length + 8 < kEnd) return file;
  std::string header = file.substr(kEnd, length + 8 - kEnd);
  const std::string data = file.substr(length + 8);
  mutate(&header);
  file.resize(kEnd);
  file += header;
  length = file.size() - 8;
  std::memcpy(file.data(), &length, 8);
  file.replace(tape_file::kDigitsAt, tape_file::kDigits, checksum_text(tape_file::header_checksum(bytes_of(file))));
  return file + data;
}

std::string mutate_sealed(const std::string& file, std::mt19937& random) {
  SealedTape tape(file);
  switch (random() % 8) {
    case 0:
      mutate_metadata(&tape, random);
      break;
    case 1:
      drop_part(&tape, random);
      break;
    default:
      mutate_part(&tape, random);
  }
  return tape.seal();
}

void load_and_replay(const std::string& path) {
  load_tape(path, Check::structure);
  const TapeFile file = load_tape(path);
  if (file.plan && file.plan->feasible && fuzz::can_run(file.captured) && fuzz::can_run(file.plan->graph))
    fuzz::replay_and_compare(*file.plan, file.plan->graph);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  std::string file(fuzz::text_of(data, size));
  try {
    if (const auto choice = random() % 8; choice == 0)
      mutate(&file);
    else if (choice == 1)
      file = mutate_header(file);
    else
      file = mutate_sealed(file, random);
  } catch (const Error&) {  // the file cannot be taken apart
    mutate(&file);
  }
  const std::size_t kept = std::min(file.size(), most);
  std::memcpy(data, file.data(), kept);
  return kept;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_only_errors([&] { load_and_replay(file.path()); });
  return 0;
}
