// Files that are cut off or rewritten while they are read: an error, or what was in the file before or after; never a crash
// and never bytes that were not checked. And a loaded file is held once.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

namespace tapedeck {
namespace {

struct Hook {
  explicit Hook(FileCallHook hook) { set_file_call_hook(std::move(hook)); }
  ~Hook() { set_file_call_hook({}); }
};

// Runs load() once for each of its reads, and calls change() before that read. Returns the number of reads.
int change_before_each_read(const std::function<void()>& restore, const std::function<void()>& change,
                            const std::function<void()>& load) {
  for (int k = 0;; ++k) {
    restore();
    int reads = 0;
    {
      const Hook hook([&](FileCall call) {
        if (call == FileCall::read && reads++ == k) change();
        return 0;
      });
      load();
    }
    if (reads <= k) return k;
  }
}

struct Loader {
  std::string file;
  std::function<void(const std::string&)> save, load;
};

std::vector<Loader> loaders() {
  return {
      {"t.tape", [](const std::string& path) { save_tape(path, sample_tape(85)); },
       [](const std::string& path) { load_tape(path, Check::all); }},
      {"s.tape", [](const std::string& path) { save_tape(path, sample_tape(85)); },
       [](const std::string& path) { load_tape(path, Check::structure); }},
      {"w.safetensors",
       [](const std::string& path) {
         save_safetensors(path, {{"a", tensor({1, 2, 3})}, {"b", tensor({4, 5})}});
       },
       [](const std::string& path) { load_safetensors(path); }},
      {"x.npy",
       [](const std::string& path) {
         save_npy(path, tensor({1, 2, 3}));
       },
       [](const std::string& path) { load_npy(path); }},
  };
}

TEST(ChangingFile, CutOffAtEveryRead) {
  const TemporaryFolder folder;
  for (const Loader& loader : loaders()) {
    const std::string path = folder.file(loader.file);
    loader.save(path);
    const std::string whole = read_all(path);
    for (const std::size_t left : {std::size_t{0}, std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
      const int reads = change_before_each_read([&] { write_all(path, whole); },
                                                [&] { ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(left)), 0); },
                                                [&] {
                                                  try {
                                                    loader.load(path);
                                                    EXPECT_EQ(read_all(path), whole) << loader.file << ": cut off unnoticed";
                                                  } catch (const FileError& e) {
                                                    EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
                                                  }
                                                });
      EXPECT_GE(reads, 2) << loader.file;
    }
  }
}

void invert(const std::string& path, std::size_t size) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  for (char& byte : bytes) byte = static_cast<char>(~byte);
  file.seekp(0);
  file.write(bytes.data(), static_cast<std::streamsize>(size));
}

TEST(ChangingFile, RewrittenAtEveryRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.tape");
  const TapeFile tape = sample_tape(85);
  save_tape(path, tape);
  const std::string whole = read_all(path);
  change_before_each_read([&] { write_all(path, whole); }, [&] { invert(path, whole.size()); },
                          [&] {
                            try {
                              const TapeFile loaded = load_tape(path, Check::all);
                              EXPECT_TRUE(bit_equal(loaded.state.at("w"), tape.state.at("w")));
                              EXPECT_EQ(print(loaded.captured), print(tape.captured));
                            } catch (const FileError&) {
                            }
                          });
}

// In KiB, of this process; -1 if the system does not say.
long status_number(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::atol(line.c_str() + key.size());
  return -1;
}

TEST(LoadedFile, HoldsTensorsOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.tape");
  constexpr std::int64_t kBytes = 16 << 20;
  {
    TapeFile tape;
    tape.captured = parse("graph g(%x: f32[1]) state(%w: f32[4194304]) {\n  %y: f32[1] = neg(%x)\n  return %y\n}\n", "g");
    tape.state["w"] = default_value(tape.captured.values[1].type, 1, "w");
    save_tape(path, tape);
  }
  std::ofstream("/proc/self/clear_refs") << '5';  // the peak starts again
  const long before = status_number("VmRSS:"), peak_before = status_number("VmHWM:");
  if (before < 0 || peak_before > before + 1024) GTEST_SKIP() << "this system does not reset the peak of the memory";
  const TapeFile loaded = load_tape(path);
  EXPECT_EQ(loaded.state.at("w").bytes(), kBytes);
  const long taken = status_number("VmHWM:") - before;
  EXPECT_LT(taken, (kBytes >> 10) * 5 / 4) << "KiB";
}

}  // namespace
}  // namespace tapedeck
