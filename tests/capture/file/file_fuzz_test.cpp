// Damages files at random. Loading a damaged file must succeed or throw one of our errors. The checksums must find raw
// damage. If the damage is sealed with correct checksums, the later checks must find it. Seeds are fixed; a failure prints
// its seed.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/tape_file.h>
#include <tapedeck/capture/formats/npy.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/sealed_tape.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace tapedeck {
namespace {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  // Makes one to three random changes.
  void mutate(std::string& s) {
    for (std::size_t n = 1 + below(3); n > 0; --n) change(s);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void change(std::string& s) {
    if (s.empty()) return s.push_back(static_cast<char>(random_()));
    const std::size_t at = below(s.size());
    switch (below(8)) {
      case 0:
        s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
        return;
      case 1:
        s[at] = static_cast<char>(random_());
        return;
      case 2:
        s.resize(at);
        return;
      case 3:
        s.erase(at, 1 + below(40));
        return;
      case 4:
        s.insert(at, s.substr(below(s.size()), 1 + below(40)));
        return;  // insert a piece of the file elsewhere
      case 5:
        swap_pieces(s);
        return;
      case 6:
        change_length(s);
        return;
      default:
        change_number(s);
        return;
    }
  }
  void swap_pieces(std::string& s) {
    const std::size_t n = std::min<std::size_t>(1 + below(16), s.size() / 2), a = below(s.size() - n), b = below(s.size() - n);
    for (std::size_t i = 0; i < n; ++i) std::swap(s[a + i], s[b + i]);
  }
  // Overwrites the header's length, or any eight bytes.
  void change_length(std::string& s) {
    const std::uint64_t special[] = {0,           1,           7,          8,     s.size(), s.size() - 8,
                                     100'000'000, 100'000'001, 1ull << 63, ~0ull, ~0ull - 7};
    const std::uint64_t value = special[below(11)];
    const std::size_t at = below(2) ? 0 : below(s.size());
    std::memcpy(s.data() + at, &value, std::min<std::size_t>(8, s.size() - at));
  }
  // Replaces a number in the text by another number.
  void change_number(std::string& s) {
    const char* special[] = {"0",
                             "-1",
                             "1",
                             "2",
                             "64",
                             "1e9",
                             "2147483647",
                             "-2147483648",
                             "2147483648",
                             "9223372036854775807",
                             "18446744073709551616",
                             "0.5"};
    const std::size_t begin = s.find_first_of("0123456789", below(s.size()));
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(s.find_first_not_of("0123456789", begin), s.size());
    s.replace(begin, end - begin, below(2) ? special[below(12)] : std::to_string(below(40)));
  }

  std::mt19937 random_;
};

// Returns true if f succeeds, false if f throws one of our errors. Any other exception fails the test.
template <class F>
bool survives(F&& f) {
  try {
    f();
    return true;
  } catch (const FileError&) {
  } catch (const ParseError&) {
  } catch (const InvalidGraphError&) {
  } catch (const TypeError&) {
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
  }
  return false;
}

std::string saved_bytes(const TapeFile& tape) {
  const TemporaryFolder folder;
  save_tape(folder.file("t.tape"), tape);
  return read_all(folder.file("t.tape"));
}

// A tape with every kind of content that a file may hold.
TapeFile full_tape(double budget) {
  TapeFile tape = sample_tape(budget);
  Profile profile;
  profile.machine = "a machine";
  profile.steps = 20;
  profile.run_us = 12.5;
  profile.nodes = {{"h", "matmul", 1.25}, {"a", "exp", 0.5}, {"nobody", "tanh", 3}};
  tape.profile = profile;
  return tape;
}

#ifdef TAPEDECK_SANITIZED
constexpr unsigned kRounds = 2'000;  // this build is many times as slow, and its fuzzers try more
#else
constexpr unsigned kRounds = 20'000;
#endif

TEST(FileFuzz, RawDamageIsAlwaysFound) {
  const std::string bases[] = {saved_bytes(sample_tape()), saved_bytes(full_tape(100)), saved_bytes(sample_tape(85))};
  for (unsigned seed = 0; seed < kRounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string& base = bases[seed % 3];
    std::string bytes = base;
    Mutator(seed).mutate(bytes);
    const bool loaded = survives([&] { read_tape(bytes_of(bytes), "fuzz", Check::all); });
    EXPECT_EQ(loaded, bytes == base) << "damage was not found";
  }
}

TEST(FileFuzz, SealedDamageNeverCrashes) {
  const SealedTape bases[] = {SealedTape(saved_bytes(full_tape(100))), SealedTape(saved_bytes(full_tape(85)))};
  const char* targets[] = {"plan", "planned_graph", "graph", "plan", "state/w", "constant/table", "input/lr", "profile"};
  int loaded = 0;
  for (unsigned seed = 0; seed < kRounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SealedTape tape = bases[seed % 2];
    Mutator mutator(seed);
    const std::string name = targets[mutator.below(8)];
    SealedTape::Part& part = tape.tensors[name];
    mutator.mutate(part.bytes);
    if (part.type.dtype == DType::u8) tape.set_text(name, part.bytes);
    part.bytes.resize(static_cast<std::size_t>(part.type.bytes()));
    const std::string bytes = tape.seal();
    loaded += survives([&] {
      const TapeFile file = read_tape(bytes_of(bytes), "fuzz", Check::all);
      verify(file.captured);
      ASSERT_TRUE(file.plan);
      verify(file.plan->graph);
      EXPECT_TRUE(check_plan(*file.plan).empty());
      survives([&] { save_tape("/dev/null", file); });
    });
  }
  EXPECT_GT(loaded, static_cast<int>(kRounds / 20)) << "too little gets through to test what stands behind the checksums";
}

TEST(FileFuzz, SealedHeadersNeverCrash) {
  const std::string base = saved_bytes(sample_tape(85));
  std::uint64_t length;
  std::memcpy(&length, base.data(), 8);
  for (unsigned seed = 0; seed < kRounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string header = base.substr(8, length);
    Mutator(seed).mutate(header);
    const std::uint64_t now = header.size();
    std::string start(8, '\0');
    std::memcpy(start.data(), &now, 8);
    start += header;
    if (start.size() >= 69) start.replace(53, 16, checksum_text(tape_file::header_checksum(bytes_of(start))));
    const std::string bytes = start + base.substr(8 + length);
    survives([&] { read_tape(bytes_of(bytes), "fuzz", Check::all); });
  }
}

TEST(FileFuzz, Npy) {
  const TemporaryFolder folder;
  save_npy(folder.file("x.npy"), from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}));
  const std::string base = read_all(folder.file("x.npy"));
  for (unsigned seed = 0; seed < kRounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string bytes = base;
    Mutator(seed).mutate(bytes);
    survives([&] { read_npy(MemorySource(bytes_of(bytes), "fuzz")); });
  }
}

}  // namespace
}  // namespace tapedeck
