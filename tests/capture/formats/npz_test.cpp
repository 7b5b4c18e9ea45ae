// Tests .npz files against archives put together by hand, as Python's zipfile writes them with and without compression, and
// against damage. zlib compresses them. replay_values_test.sh reads two that Python wrote.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <functional>

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

// The .npy file of an array u8[count], whose values need not be all there.
std::string npy_of(const std::string& values, std::size_t count) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }\n";
  return "\x93NUMPY" + little(1, 2) + little(header.size(), 2) + header + values;
}

std::string npy_of(const std::string& values) { return npy_of(values, values.size()); }

// Without a header or a sum, as zip archives hold it.
std::string deflated(const std::string& data, int level = 6, int strategy = Z_DEFAULT_STRATEGY) {
  z_stream zlib = {};
  EXPECT_EQ(deflateInit2(&zlib, level, Z_DEFLATED, -15, 8, strategy), Z_OK);
  std::string in = data, out(deflateBound(&zlib, static_cast<uLong>(data.size())), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(in.data());
  zlib.avail_in = static_cast<uInt>(in.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

struct Entry {
  std::string name, data;
  int method = 0;
  bool wide = false;        // sizes and place in the 64-bit form
  std::string packed = {};  // as it stands in the archive; empty: the data themselves
  std::uint64_t size = 0;   // that the archive claims; 0: that of the data
  std::uint32_t sum = 0;    // likewise

  const std::string& stored() const { return packed.empty() ? data : packed; }
};

Entry compressed(const std::string& name, const std::string& data) { return {name, data, 8, false, deflated(data)}; }

std::string zip_of(const std::vector<Entry>& entries) {
  std::string file, directory;
  for (const Entry& e : entries) {
    const std::uint64_t at = file.size(), size = e.size != 0 ? e.size : e.data.size();
    const std::string sums = little(e.method, 2) + little(0, 4) + little(e.sum != 0 ? e.sum : crc_of(e.data), 4);
    const std::string sizes = e.wide ? std::string(8, '\xff') : little(e.stored().size(), 4) + little(size, 4);
    const std::string extra =
        e.wide ? little(1, 2) + little(24, 2) + little(size, 8) + little(e.stored().size(), 8) + little(at, 8) : "";
    const std::string names = little(e.name.size(), 2) + little(extra.size(), 2);
    file += "PK\3\4" + little(45, 2) + little(0, 2) + sums + sizes + names + e.name + extra + e.stored();
    directory += "PK\1\2" + little(45, 2) + little(45, 2) + little(0, 2) + sums + sizes + names + little(0, 2) + little(0, 2) +
                 little(0, 2) + little(0, 4) + (e.wide ? std::string(4, '\xff') : little(at, 4)) + e.name + extra;
  }
  const std::string end = "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
                          little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
  return file + directory + end;
}

// The message with which the archive is refused; "" if it is read.
std::string npz_fault(const std::string& bytes) {
  const TemporaryFolder folder;
  write_all(folder.file("a.npz"), bytes);
  return testing::message_or_none<FileError>([&] { load_npz(folder.file("a.npz")); });
}

void expect_fault(const std::string& bytes, const std::string& part) { EXPECT_MENTIONS(npz_fault(bytes), part); }

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
  expect_fault(zip_of({{"x.npy", npy_of("\1"), 12}}), "\"x.npy\" is compressed by method 12; only deflate is read");
  expect_fault(zip_of({{"x.npy", npy_of("\1")}, {"x.npy", npy_of("\1")}}), "two arrays");
  expect_fault("no zip archive at all, but long enough", "no directory");
  expect_fault("PK", "too short");
  const std::string whole = zip_of({{"x.npy", npy_of("\1\2")}});
  for (std::size_t n : {whole.size() - 1, whole.size() - 22, whole.size() / 2})
    expect_fault(whole.substr(0, n), fmt::format("it is cut off at byte {}: the directory at the end", n));
  EXPECT_THROW(load_npz(TemporaryFolder().file("missing.npz")), FileError);
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
  expect_fault(repeated, "larger than the file");
}

TEST(Npz, ReadsCompressedArrays) {
  const TemporaryFolder folder;
  std::string long_values;  // more than the reader decompresses at once, and of more bytes than it reads at once
  for (std::uint64_t i = 0, x = 1; i < 400'000; ++i, x = x * 6364136223846793005u + 1)
    long_values += static_cast<char>(i % 5 == 0 ? x >> 56 : i >> 12);
  const struct {
    int level, strategy;
  } ways[] = {{0, Z_DEFAULT_STRATEGY}, {9, Z_DEFAULT_STRATEGY}, {6, Z_FIXED}, {6, Z_HUFFMAN_ONLY}};
  for (const bool wide : {false, true})
    for (const auto& way : ways) {
      std::vector<Entry> entries = {{"x.npy", npy_of("\1\2")},
                                    {"none.npy", npy_of("")},
                                    {"long.npy", npy_of(long_values)},
                                    {"zeros.npy", npy_of(std::string(9000, '\0'))}};
      for (Entry& e : entries) e.method = 8, e.packed = deflated(e.data, way.level, way.strategy);
      entries.push_back({"stored.npy", npy_of("\3")});
      for (Entry& e : entries) e.wide = wide;
      write_all(folder.file("a.npz"), zip_of(entries));
      const auto arrays = load_npz(folder.file("a.npz"));
      ASSERT_EQ(arrays.size(), 5u);
      EXPECT_EQ(arrays.at("x").to_vector<unsigned char>(), (std::vector<unsigned char>{1, 2}));
      EXPECT_EQ(arrays.at("none").numel(), 0);
      EXPECT_EQ(arrays.at("long").to_vector<unsigned char>(),
                std::vector<unsigned char>(long_values.begin(), long_values.end()));
      EXPECT_EQ(arrays.at("zeros").to_vector<unsigned char>(), std::vector<unsigned char>(9000));
      EXPECT_EQ(arrays.at("stored").to_vector<unsigned char>(), (std::vector<unsigned char>{3}));
    }
}

// Each message names the array and its place, which is behind another array here.
TEST(Npz, RefusesCompressedBytesThatDoNotGiveWhatIsClaimed) {
  const Entry first = {"first.npy", npy_of("\1")}, good = compressed("x.npy", npy_of(std::string(50, '\7')));
  const std::string place = "a.npz: \"x.npy\" at byte " + std::to_string(30 + first.name.size() + first.data.size()) + ": ";
  ASSERT_EQ(npz_fault(zip_of({first, good})), "");
  const auto refused = [&](const std::function<void(Entry&)>& change, const std::string& part) {
    Entry bad = good;
    change(bad);
    expect_fault(zip_of({first, bad}), part);
  };
  refused([](Entry& e) { e.packed.resize(e.packed.size() - 1); },
          place + "cannot be decompressed: its compressed bytes end in the middle");
  refused([](Entry& e) { e.packed += "abc"; }, place + "cannot be decompressed: 3 bytes follow the end of its compressed data");
  refused([](Entry& e) { e.packed[0] = '\7'; }, place + "cannot be decompressed: it is damaged before byte ");
  refused([](Entry& e) { e.sum = 1; }, "the checksum of \"x.npy\" at byte ");
  // The .npy header and the archive agree with each other, but not with the compressed bytes.
  const std::string values(50, '\7');
  refused([&](Entry& e) { e.packed = deflated(npy_of(values, 51)), e.size = e.data.size() + 1; },
          place + "cannot be decompressed: its compressed bytes give only " + std::to_string(good.data.size()) + " bytes");
  refused(
      [&](Entry& e) { e.packed = deflated(npy_of(values, 49)), e.size = e.data.size() - 1; },
      place + "cannot be decompressed: its compressed bytes give more than " + std::to_string(good.data.size() - 1) + " bytes");
  // They do not agree.
  refused([](Entry& e) { e.size = e.data.size() + 1; },
          place + "not a readable .npy file: u8[50] takes 50 bytes, 51 follow the header");
  refused([](Entry& e) { e.size = 20; }, place + "not a readable .npy file: truncated in the header");
}

// A small archive that claims much costs little.
TEST(Npz, MemoryIsBoundedByWhatDeflateCanGive) {
  Entry bomb = compressed("x.npy", npy_of(std::string(1 << 20, '\0')));
  ASSERT_EQ(npz_fault(zip_of({bomb})), "");
  bomb.size = 1032 * bomb.packed.size() + 1;
  expect_fault(zip_of({bomb}), "\"x.npy\" at byte 0 claims " + std::to_string(bomb.size) + " bytes, more than its " +
                                   std::to_string(bomb.packed.size()) + " compressed bytes can give");
  bomb.size = ~std::uint64_t{0};
  bomb.wide = true;
  expect_fault(zip_of({bomb}), "more than its");
  // Within that bound the header of the array must claim as much, before memory is taken for it.
  bomb.size = 1032 * bomb.packed.size();
  Allocator::host().reset_peak();
  const MemoryStats before = Allocator::host().stats();
  expect_fault(zip_of({bomb}), "u8[1048576] takes 1048576 bytes, ");
  EXPECT_EQ(Allocator::host().stats().peak_bytes, before.bytes_in_use);
  // Two names for the same bytes.
  const std::string twice = zip_of({compressed("x.npy", npy_of("\1")), compressed("y.npy", npy_of("\1"))});
  std::string shared = twice;
  const std::size_t second = shared.rfind("PK\1\2");
  shared.replace(second + 42, 4, little(0, 4));
  ASSERT_EQ(npz_fault(twice), "");
  expect_fault(shared, "\"y.npy\" at byte 0 overlaps \"x.npy\" at byte 0");
}

// Whatever byte is damaged and wherever the file ends, the arrays are as before or there is a FileError.
TEST(Npz, DamageIsAnError) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& bytes) {
    std::filesystem::remove(folder.file("a.npz"));  // some file systems wait for the disk when a file is written over
    write_all(folder.file("a.npz"), bytes);
    try {
      for (const auto& [name, array] : load_npz(folder.file("a.npz")))
        EXPECT_EQ(array.to_vector<unsigned char>(), (std::vector<unsigned char>{1, 2, 3}));
    } catch (const FileError&) {
    }
  };
  for (const std::string& good : {zip_of({{"x.npy", npy_of("\1\2\3")}}), zip_of({compressed("x.npy", npy_of("\1\2\3"))})})
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
