// Tests .npz files against archives put together by hand, as Python's zipfile writes them without compression, and against
// damage. replay_values_test.sh reads one that Python wrote.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <cstdint>

namespace tapedeck {
namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
  return text;
}

// Bit by bit, unlike the code.
std::uint32_t crc_of(const std::string& data) {
  std::uint32_t sum = ~0u;
  for (const char c : data)
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = ((sum ^ (static_cast<unsigned char>(c) >> bit)) & 1) != 0;
      sum = sum >> 1 ^ (one ? 0xedb88320u : 0u);
    }
  return ~sum;
}

std::string npy_of(const std::string& values) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }\n";
  return "\x93NUMPY" + little(1, 2) + little(header.size(), 2) + header + values;
}

struct Entry {
  std::string name, data;
  int method = 0;
  bool wide = false;  // sizes and place in the 64-bit form
};

std::string zip_of(const std::vector<Entry>& entries) {
  std::string file, directory;
  for (const Entry& e : entries) {
    const std::uint64_t at = file.size();
    const std::string sums = little(e.method, 2) + little(0, 4) + little(crc_of(e.data), 4);
    const std::string sizes = e.wide ? std::string(8, '\xff') : little(e.data.size(), 4) + little(e.data.size(), 4);
    const std::string extra =
        e.wide ? little(1, 2) + little(24, 2) + little(e.data.size(), 8) + little(e.data.size(), 8) + little(at, 8) : "";
    const std::string names = little(e.name.size(), 2) + little(extra.size(), 2);
    file += "PK\3\4" + little(45, 2) + little(0, 2) + sums + sizes + names + e.name + extra + e.data;
    directory += "PK\1\2" + little(45, 2) + little(45, 2) + little(0, 2) + sums + sizes + names + little(0, 2) + little(0, 2) +
                 little(0, 2) + little(0, 4) + (e.wide ? std::string(4, '\xff') : little(at, 4)) + e.name + extra;
  }
  const std::string end = "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
                          little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
  return file + directory + end;
}

TEST(Npz, ReadsStoredArrays) {
  const TemporaryFolder folder;
  for (const bool wide : {false, true}) {
    write_all(folder.file("a.npz"), zip_of({{"x.npy", npy_of("\1\2"), 0, wide}, {"deep/y.npy", npy_of("\3"), 0, wide}}));
    const auto arrays = load_npz(folder.file("a.npz"));
    ASSERT_EQ(arrays.size(), 2u);
    EXPECT_EQ(arrays.at("x").to_vector<unsigned char>(), (std::vector<unsigned char>{1, 2}));
    EXPECT_EQ(arrays.at("deep/y").to_vector<unsigned char>(), (std::vector<unsigned char>{3}));
  }
  write_all(folder.file("none.npz"), zip_of({}));
  EXPECT_TRUE(load_npz(folder.file("none.npz")).empty());
}

TEST(Npz, SaysWhatItDoesNotRead) {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& bytes) {
    write_all(folder.file("a.npz"), bytes);
    return message_of<FileError>([&] { load_npz(folder.file("a.npz")); });
  };
  EXPECT_NE(fault(zip_of({{"x.npy", npy_of("\1"), 8}})).find("numpy.savez instead"), std::string::npos);
  EXPECT_NE(fault(zip_of({{"x.npy", npy_of("\1")}, {"x.npy", npy_of("\1")}})).find("two arrays"), std::string::npos);
  EXPECT_NE(fault("no zip archive at all, but long enough").find("no directory"), std::string::npos);
  EXPECT_NE(fault("PK").find("too short"), std::string::npos);
  EXPECT_THROW(load_npz(folder.file("missing.npz")), FileError);
  // A thousand entries of the directory that name the same data ask for a thousand times the memory of the file.
  const std::string one = zip_of({{"x.npy", npy_of(std::string(500, '\1'))}});
  const std::size_t directory = one.find("PK\1\2"), end = one.find("PK\5\6");
  std::string repeated = one.substr(0, directory);
  for (int i = 0; i < 1000; ++i) {
    std::string entry = one.substr(directory, end - directory);
    entry[46] = static_cast<char>('a' + i % 26), entry.replace(46 + 1, 1, 1, static_cast<char>('A' + i / 26));
    repeated += entry;
  }
  repeated += "PK\5\6" + little(0, 4) + little(1000, 2) + little(1000, 2) + little(repeated.size() - directory, 4) +
              little(directory, 4) + little(0, 2);
  EXPECT_NE(fault(repeated).find("larger than the file"), std::string::npos);
}

// Whatever byte is damaged and wherever the file ends, the arrays are as before or there is a FileError.
TEST(Npz, DamageIsAnError) {
  const TemporaryFolder folder;
  const std::string good = zip_of({{"x.npy", npy_of("\1\2\3")}});
  const auto read = [&](const std::string& bytes) {
    write_all(folder.file("a.npz"), bytes);
    try {
      for (const auto& [name, array] : load_npz(folder.file("a.npz")))
        EXPECT_EQ(array.to_vector<unsigned char>(), (std::vector<unsigned char>{1, 2, 3}));
    } catch (const FileError&) {
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ change);
      read(bad);
    }
    read(good.substr(0, i));
  }
}

}  // namespace
}  // namespace tapedeck
