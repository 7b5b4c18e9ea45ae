// A record is its length (u32), its kind (u8) and its fields in the order of the struct, all little-endian. FORMAT.md has the
// list. One function names the fields of each record, for the writer and the reader alike.
#include <tapedeck/capture/live/live_records.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tapedeck::live {

static_assert(std::endian::native == std::endian::little, "the records are written as they lie in memory");

namespace {

// Collects the fields of one record, which is never longer than kMostRecordBytes.
class Writer {
 public:
  template <class T>
  void number(const T& value) {
    std::memcpy(bytes_ + size_, &value, sizeof(T));
    size_ += sizeof(T);
  }
  void text(const std::string& text) {
    const std::size_t n = std::min(text.size(), kMostTextBytes);
    number(static_cast<std::uint16_t>(n));
    std::memcpy(bytes_ + size_, text.data(), n);
    size_ += n;
  }
  void types(std::uint8_t n, const Type* types) {
    number(n);
    for (int i = 0; i < n; ++i) {
      number(static_cast<std::uint8_t>(types[i].dtype));
      number(static_cast<std::uint8_t>(types[i].shape.rank));
      for (int d = 0; d < types[i].shape.rank; ++d) number(types[i].shape[d]);
    }
  }
  void append_to(Bytes* to) {
    const auto length = static_cast<std::uint32_t>(size_ - sizeof(std::uint32_t));
    std::memcpy(bytes_, &length, sizeof(length));
    to->insert(to->end(), bytes_, bytes_ + size_);
  }

 private:
  static constexpr std::size_t kRoom = 64 + 2 * (kMostTextBytes + 2) + kMostTypes * (2 + 8 * kMaxRank);
  std::size_t size_ = 0;
  unsigned char bytes_[kRoom];
};

// Reads the fields of one record. What does not fit, or is not allowed, sets `fine` to false, and the values are not to be
// used.
class Reader {
 public:
  explicit Reader(std::span<const unsigned char> bytes) : bytes_(bytes) {}
  bool fine = true;
  bool at_end() const { return bytes_.empty(); }

  template <class T>
  void number(T& value) {
    if (bytes_.size() < sizeof(T)) {
      fine = false;
      return;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
  }
  void text(std::string& text) {
    std::uint16_t n = 0;
    number(n);
    if (n > kMostTextBytes || n > bytes_.size()) fine = false;
    if (!fine) return;
    text.assign(reinterpret_cast<const char*>(bytes_.data()), n);
    bytes_ = bytes_.subspan(n);
  }
  void types(std::uint8_t& n, Type* types) {
    number(n);
    if (n > kMostTypes) fine = false;
    for (int i = 0; i < n && fine; ++i) type(&types[i]);
  }

 private:
  void type(Type* type) {
    std::uint8_t dtype = 0, rank = 0;
    number(dtype), number(rank);
    if (dtype >= kDTypeCount || rank > kMaxRank) fine = false;
    if (!fine) return;
    type->dtype = static_cast<DType>(dtype);
    type->shape.rank = rank;
    for (int d = 0; d < rank; ++d) {
      number(type->shape.sizes[d]);
      if (type->shape.sizes[d] < 0) fine = false;
    }
  }

  std::span<const unsigned char> bytes_;
};

// ---- the fields of the records ----

template <class F, class R>
void fields(F& f, R& r, std::type_identity<TextRecord>) {
  f.number(r.id), f.text(r.text);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<OpRecord>) {
  f.number(r.index), f.number(r.time_ns), f.number(r.live), f.number(r.bytes);
  f.number(r.op), f.number(r.path), f.number(r.file), f.number(r.line), f.number(r.thread);
  f.number(r.phase), f.number(r.flags), f.number(r.n_results), f.types(r.n_types, r.types);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<StepRecord>) {
  f.number(r.index), f.number(r.time_ns), f.number(r.live), f.number(r.step);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<DroppedRecord>) {
  f.number(r.count), f.number(r.highest_live);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<ReplayRecord>) {
  f.number(r.index), f.number(r.time_ns), f.number(r.live), f.number(r.peak), f.number(r.name), f.number(r.nodes);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<CapturedRecord>) {
  f.number(r.time_ns), f.text(r.file), f.text(r.message);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<EndedRecord>) {
  f.number(r.time_ns), f.text(r.reason);
}
template <class F, class R>
void fields(F& f, R& r, std::type_identity<PastRecord>) {
  f.number(r.index), f.number(r.count), f.number(r.time_ns), f.number(r.lowest), f.number(r.highest), f.number(r.steps);
}

// ---- values that are allowed ----

bool is_allowed(const TextRecord& r) { return r.id > 0 && r.id < kMostTexts; }
bool is_allowed(const OpRecord& r) {
  return r.index < kMostCalls && r.live >= 0 && r.bytes >= 0 && r.time_ns >= 0 && r.op < kMostTexts && r.path < kMostTexts &&
         r.file < kMostTexts && r.line >= 0 && r.phase <= Phase::update && r.n_types <= r.n_results;
}
bool is_allowed(const StepRecord& r) { return r.index < kMostCalls && r.step < kMostCalls && r.time_ns >= 0 && r.live >= 0; }
bool is_allowed(const DroppedRecord& r) { return r.count < kMostCalls && r.highest_live >= 0; }
bool is_allowed(const ReplayRecord& r) {
  return r.index < kMostCalls && r.time_ns >= 0 && r.live >= 0 && r.peak >= 0 && r.name < kMostTexts && r.nodes >= 0;
}
// The file lies in the folder itself.
bool is_allowed(const CapturedRecord& r) {
  return r.time_ns >= 0 && r.file.find('/') == std::string::npos && r.file.find('\0') == std::string::npos &&
         !r.file.starts_with('.');
}
bool is_allowed(const EndedRecord& r) { return r.time_ns >= 0; }
bool is_allowed(const PastRecord& r) {
  return r.time_ns >= 0 && r.lowest >= 0 && r.highest >= r.lowest && r.index < kMostCalls && r.count < kMostCalls &&
         r.steps < kMostCalls;
}

template <class R>
bool read_as(std::span<const unsigned char> bytes, Record* record) {
  Reader reader(bytes);
  R r;
  fields(reader, r, std::type_identity<R>());
  if (!reader.fine || !reader.at_end() || !is_allowed(r)) return false;
  *record = std::move(r);
  return true;
}

bool read_kind(RecordKind kind, std::span<const unsigned char> bytes, Record* record) {
  switch (kind) {
    case RecordKind::text:
      return read_as<TextRecord>(bytes, record);
    case RecordKind::op:
      return read_as<OpRecord>(bytes, record);
    case RecordKind::step:
      return read_as<StepRecord>(bytes, record);
    case RecordKind::dropped:
      return read_as<DroppedRecord>(bytes, record);
    case RecordKind::replay:
      return read_as<ReplayRecord>(bytes, record);
    case RecordKind::captured:
      return read_as<CapturedRecord>(bytes, record);
    case RecordKind::ended:
      return read_as<EndedRecord>(bytes, record);
    case RecordKind::past:
      return read_as<PastRecord>(bytes, record);
  }
  return false;
}

}  // namespace

void append_chunk_header(std::uint64_t number, Bytes* to) {
  to->insert(to->end(), kMagic.begin(), kMagic.end());
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&number);
  to->insert(to->end(), bytes, bytes + sizeof(number));
}

namespace {
template <class R>
void append_record(RecordKind kind, const R& r, Bytes* to) {
  Writer writer;
  writer.number(std::uint32_t{0});  // the length follows
  writer.number(kind);
  fields(writer, r, std::type_identity<R>());
  writer.append_to(to);
}
}  // namespace

void append(const Record& record, Bytes* to) {
  const auto kind = static_cast<RecordKind>(record.index() + 1);
  std::visit([&](const auto& r) { append_record(kind, r, to); }, record);
}

void append_op(const OpRecord& record, Bytes* to) { append_record(RecordKind::op, record, to); }

std::string RecordReader::header_problem(std::span<const unsigned char> bytes, std::uint64_t expected_number) {
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size() - 2) != 0) return "is no file of a live view";
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return "is of another version";
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + kMagic.size(), sizeof(number));
  return number == expected_number ? "" : fmt::format("says that it is number {}", number);
}

bool RecordReader::next(std::span<const unsigned char> bytes, Record* record, std::size_t* taken) {
  std::uint32_t length = 0;
  if (!damage_.empty() || bytes.size() < sizeof(length)) return false;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length < 1 || length > kMostRecordBytes) {
    damage_ = fmt::format("a record of {} bytes", length);
    return false;
  }
  if (bytes.size() - sizeof(length) < length) return false;
  const auto kind = static_cast<RecordKind>(bytes[sizeof(length)]);
  if (!read_kind(kind, bytes.subspan(sizeof(length) + 1, length - 1), record)) {
    damage_ = fmt::format("a record of kind {} with wrong fields", bytes[sizeof(length)]);
    return false;
  }
  *taken = sizeof(length) + length;
  return true;
}

}  // namespace tapedeck::live
