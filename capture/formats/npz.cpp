// .npz:  a zip archive of .npy files. Read: members that are stored as they are or compressed by deflate, in archives of one
// part.
//
//     local header, name, extra, data | ... | central directory: one entry for each member | end of the central directory
//
// The central directory is believed for names, places and sizes, and every place is checked against the file before it is read.
// The members must not overlap, and together they must not take more bytes than the file has. A compressed member must not
// claim more bytes than deflate can make of it, so no file asks for more memory than kMostInflation times its own size. The
// memory of an array is allocated after its .npy header was read and agrees with the size in the directory.
//
// The 64-bit form of sizes (an extra field of id 1) is read too: numpy writes it for arrays of 4 GiB and more.
#include <tapedeck/capture/formats/npy.h>
#include <tapedeck/capture/formats/tensor_files.h>

#include <tapedeck/capture/formats/inflated_source.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tapedeck {

namespace {

constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kMostComment = 65535;
constexpr std::uint64_t kMostDirectory = std::uint64_t{1} << 26;
constexpr std::uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the number stands in the extra field
constexpr std::uint16_t kStored = 0, kDeflated = 8;

template <class T>
T number(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Part of a file, as a source of its own.
class Window final : public ByteSource {
 public:
  Window(const ByteSource& file, std::uint64_t begin, std::uint64_t size, std::string path)
      : ByteSource(std::move(path)), file_(file), begin_(begin) {
    size_ = size;
  }
  void read(std::uint64_t at, std::span<unsigned char> to) const override { file_.read(begin_ + at, to); }

 private:
  const ByteSource& file_;
  std::uint64_t begin_;
};

struct Member {
  std::string name;
  std::uint64_t size = 0, packed = 0;   // of its .npy file; of its data in the archive
  std::uint64_t header = 0, begin = 0;  // the places of its local header and of its data
  std::uint32_t sum = 0;                // CRC-32 of its .npy file
  bool is_deflated = false;             // otherwise the data are the .npy file
  std::string place() const { return fmt::format("{} at byte {}", shown(name), header); }
};

class Archive {
 public:
  explicit Archive(const ByteSource& file) : file_(file) {
    read_directory(find_end());
    for (Member& m : members_) m.begin = begin_of(m);
    check_overlaps();
  }

  const std::vector<Member>& members() const { return members_; }

  Tensor array(const Member& m) const {
    const std::string path = fmt::format("{}: {}", file_.path(), m.place());
    if (!m.is_deflated) {
      const Window data(file_, m.begin, m.size, path);
      check_sum(m, crc_of(data));
      return read_npy(data);
    }
    const InflatedSource data(file_, m.begin, m.packed, m.size, path);
    Tensor array = read_npy(data);
    check_sum(m, data.finish());
    return array;
  }

 private:
  struct Directory {
    std::uint64_t begin = 0, size = 0;
    std::uint32_t entries = 0;
  };

  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: not a readable .npz file: {}", file_.path(), reason));
  }

  // REQUIRES: the file holds four bytes.
  bool begins_as_archive() const {
    unsigned char first[4] = {};
    file_.read(0, first);
    return number<std::uint32_t>(first) == kLocalMark;
  }

  // The end of the directory stands at the end of the file, before a comment of unknown length.
  Directory find_end() const {
    if (file_.size() < kEndBytes) fail("it is too short for a zip archive");
    const std::uint64_t tail = std::min<std::uint64_t>(file_.size(), kEndBytes + kMostComment);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(tail));
    file_.read(file_.size() - tail, bytes);
    for (std::size_t at = bytes.size() - kEndBytes + 1; at-- > 0;) {
      const unsigned char* end = &bytes[at];
      if (number<std::uint32_t>(end) != kEndMark) continue;
      const auto part = number<std::uint16_t>(end + 4), entries = number<std::uint16_t>(end + 10);
      const Directory found{number<std::uint32_t>(end + 16), number<std::uint32_t>(end + 12), entries};
      if (part != 0 || number<std::uint16_t>(end + 8) != entries) fail("it is an archive of several parts");
      if (found.begin == kIn64 || entries == 0xffff) fail("its directory is in the 64-bit form, which is not supported");
      if (found.size > kMostDirectory || found.begin + found.size > file_.size()) fail("its directory is outside of the file");
      return found;
    }
    fail(begins_as_archive()
             ? fmt::format("it is cut off at byte {}: the directory at the end of a zip archive is lacking", file_.size())
             : "it has no directory of a zip archive");
  }

  void read_directory(const Directory& directory) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(directory.size));
    file_.read(directory.begin, bytes);
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < directory.entries; ++i) {
      const unsigned char* entry = bytes.data() + at;
      if (bytes.size() - at < kEntryBytes || number<std::uint32_t>(entry) != kEntryMark) fail("its directory is damaged");
      const std::size_t name = number<std::uint16_t>(entry + 28), extra = number<std::uint16_t>(entry + 30),
                        comment = number<std::uint16_t>(entry + 32);
      if (bytes.size() - at - kEntryBytes < name + extra + comment) fail("its directory is damaged");
      add(entry, {entry + kEntryBytes + name, extra}, std::string(reinterpret_cast<const char*>(entry + kEntryBytes), name));
      at += kEntryBytes + name + extra + comment;
    }
  }

  void add(const unsigned char* entry, Bytes extra, const std::string& name) {
    Member m{.name = name,
             .size = number<std::uint32_t>(entry + 24),
             .packed = number<std::uint32_t>(entry + 20),
             .header = number<std::uint32_t>(entry + 42),
             .sum = number<std::uint32_t>(entry + 16)};
    const auto method = number<std::uint16_t>(entry + 10);
    if ((number<std::uint16_t>(entry + 8) & 1) != 0) fail(fmt::format("{} is encrypted", shown(name)));
    if (method != kStored && method != kDeflated)
      fail(fmt::format("{} is compressed by method {}; only deflate is read, which numpy.savez_compressed writes", shown(name),
                       method));
    m.is_deflated = method == kDeflated;
    widen(extra, {&m.size, &m.packed, &m.header});
    if (!m.is_deflated && m.packed != m.size) fail(fmt::format("the sizes of {} contradict each other", m.place()));
    if (m.packed > file_.size() - total_) fail("its arrays are larger than the file");
    if (m.size > 0 && (m.size - 1) / kMostInflation >= m.packed)
      fail(fmt::format("{} claims {} bytes, more than its {} compressed bytes can give", m.place(), m.size, m.packed));
    total_ += m.packed;
    members_.push_back(std::move(m));
  }

  // Numbers that do not fit into 32 bits stand in the extra field of id 1, in this order.
  void widen(Bytes extra, std::initializer_list<std::uint64_t*> numbers) const {
    while (extra.size() >= 4) {
      const std::size_t size = number<std::uint16_t>(extra.data() + 2);
      if (extra.size() - 4 < size) fail("its directory is damaged");
      Bytes field = extra.subspan(4, size);
      if (number<std::uint16_t>(extra.data()) == 1)
        for (std::uint64_t* value : numbers) {
          if (*value != kIn64) continue;
          if (field.size() < 8) fail("its directory is damaged");
          *value = number<std::uint64_t>(field.data());
          field = field.subspan(8);
        }
      extra = extra.subspan(4 + size);
    }
  }

  std::uint64_t begin_of(const Member& m) const {
    if (m.header > file_.size() || file_.size() - m.header < kLocalBytes) fail(m.place() + " is outside of the file");
    unsigned char local[kLocalBytes];
    file_.read(m.header, local);
    if (number<std::uint32_t>(local) != kLocalMark) fail(m.place() + " has no header");
    const std::uint64_t begin = m.header + kLocalBytes + number<std::uint16_t>(local + 26) + number<std::uint16_t>(local + 28);
    if (begin > file_.size() || m.packed > file_.size() - begin) fail(m.place() + " is outside of the file");
    return begin;
  }

  void check_overlaps() const {
    std::vector<const Member*> ordered;
    for (const Member& m : members_) ordered.push_back(&m);
    std::stable_sort(ordered.begin(), ordered.end(), [](const Member* a, const Member* b) { return a->header < b->header; });
    for (std::size_t i = 1; i < ordered.size(); ++i)
      if (ordered[i]->header < ordered[i - 1]->begin + ordered[i - 1]->packed)
        fail(fmt::format("{} overlaps {}", ordered[i]->place(), ordered[i - 1]->place()));
  }

  void check_sum(const Member& m, std::uint32_t sum) const {
    if (sum != m.sum) fail(fmt::format("the checksum of {} is wrong", m.place()));
  }

  static std::uint32_t crc_of(const ByteSource& data) {
    uLong sum = 0;
    std::vector<unsigned char> piece(static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), 1 << 20)));
    for (std::uint64_t at = 0; at < data.size(); at += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), data.size() - at)));
      data.read(at, piece);
      sum = ::crc32_z(sum, piece.data(), piece.size());
    }
    return static_cast<std::uint32_t>(sum);
  }

  const ByteSource& file_;
  std::vector<Member> members_;
  std::uint64_t total_ = 0;  // of their bytes in the archive; at most the size of the file
};

}  // namespace

std::map<std::string, Tensor> load_npz(const std::string& path) {
  const InputFile file(path);
  const Archive archive(file);
  std::map<std::string, Tensor> arrays;
  for (const Member& m : archive.members()) {
    const std::string name = m.name.ends_with(".npy") ? m.name.substr(0, m.name.size() - 4) : m.name;
    if (!arrays.emplace(name, archive.array(m)).second)
      throw FileError(fmt::format("{}: not a readable .npz file: two arrays are named {}", path, shown(name)));
  }
  file.check_unchanged();
  return arrays;
}

}  // namespace tapedeck
