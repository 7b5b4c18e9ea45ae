// .safetensors:  header length (u64) | header (JSON: name -> dtype, shape, data_offsets) | data
// Reading checks the header against the file before any tensor is made. Writing puts tensors of wide elements first, so that
// every tensor lies aligned without padding.
#include <tapedeck/capture/formats/safetensors.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/tensor_impl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of other readers of the format
constexpr std::size_t kLengthBytes = 8;
constexpr const char* kDTypeNames[kDTypeCount] = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8", "BOOL"};

// The dtypes of the format that are not ours, with the bits of an element.
struct ForeignDType {
  const char* name;
  std::uint64_t bits;
};
constexpr ForeignDType kForeignDTypes[] = {
    {"I8", 8},      {"I16", 16},    {"U16", 16},        {"U32", 32},        {"U64", 64},    {"C64", 64},    {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
};

// A dtype by its name: ours, or a foreign one.
struct FileDType {
  std::optional<DType> own;
  const ForeignDType* foreign = nullptr;
  std::uint64_t bits() const { return own ? 8 * dtype_size(*own) : foreign->bits; }
};

FileDType parse_dtype(std::string_view name) {
  for (int d = 0; d < kDTypeCount; ++d)
    if (name == kDTypeNames[d]) return {static_cast<DType>(d), nullptr};
  for (const ForeignDType& foreign : kForeignDTypes)
    if (name == foreign.name) return {std::nullopt, &foreign};
  throw JsonError(fmt::format("dtype {} is not known", shown(name)));
}

JsonValue member(JsonValue object, std::string_view key) {
  if (auto value = object.find(key)) return *value;
  throw JsonError(fmt::format("{} is missing", shown(key)));
}

// The shape of a tensor whose elements are at most as wide as those of `widest`.
Shape parse_shape(JsonValue info, DType widest) {
  const JsonValue shape = member(info, "shape");
  std::int64_t sizes[kMaxRank];
  std::size_t rank = 0;
  for (const JsonValue size : shape.items()) {
    if (rank == kMaxRank) throw JsonError(fmt::format("rank {} is above {}", shape.size(), kMaxRank));
    sizes[rank++] = size.as_integer();
  }
  const std::span<const std::int64_t> dims(sizes, rank);
  if (checked_bytes(widest, dims) < 0) throw JsonError("a size is negative, or the tensor is larger than 64 TiB");
  return Shape(dims);
}

// The place of the data in the file.
struct DataRange {
  std::uint64_t begin = 0, size = 0;
};

// The bytes of one tensor in the file.
struct Span {
  std::string_view name;
  std::uint64_t begin = 0, size = 0;
};

// The bytes of a tensor of this dtype. Elements of 4 and 6 bits are packed, and fill whole bytes.
std::uint64_t stored_bytes(const FileDType& dtype, const Shape& shape) {
  const std::uint64_t bits = dtype.bits() * static_cast<std::uint64_t>(shape.numel());  // below 2^50, see parse_shape()
  if (bits % 8 != 0) throw JsonError(fmt::format("{} bits do not fill whole bytes", bits));
  return bits / 8;
}

// Where the tensor begins in the file; it is inside the data, and exactly as long as its type says.
std::uint64_t parse_begin(JsonValue info, const std::string& type, std::uint64_t bytes, DataRange data) {
  const JsonValue offsets = member(info, "data_offsets");
  std::int64_t ends[2];
  std::size_t n = 0;
  for (const JsonValue offset : offsets.items()) {
    if (n < 2) ends[n] = offset.as_integer();
    ++n;
  }
  if (n != 2) throw JsonError("data_offsets are not two");
  const auto [begin, end] = std::pair(ends[0], ends[1]);
  if (begin < 0 || end < begin || std::cmp_greater(end, data.size))
    throw JsonError(fmt::format("data_offsets [{}, {}] are not inside the {} bytes of data", begin, end, data.size));
  if (std::cmp_not_equal(end - begin, bytes))
    throw JsonError(fmt::format("{} takes {} bytes, data_offsets give {}", type, bytes, end - begin));
  return data.begin + static_cast<std::uint64_t>(begin);
}

template <class T>
void sort_by_place(std::vector<T>& all, std::uint64_t (*size)(const T&)) {
  std::stable_sort(all.begin(), all.end(),
                   [&](const T& a, const T& b) { return std::tuple(a.begin, size(a)) < std::tuple(b.begin, size(b)); });
}

void check_tiling(std::vector<Span> spans, DataRange data) {
  sort_by_place<Span>(spans, [](const Span& s) { return s.size; });
  std::uint64_t position = data.begin;
  for (const Span& t : spans) {
    if (t.begin < position) throw JsonError(fmt::format("tensor {} overlaps the one before it", shown(t.name)));
    if (t.begin > position)
      throw JsonError(fmt::format("there is a hole of {} bytes before tensor {}", t.begin - position, shown(t.name)));
    position = t.begin + t.size;
  }
  const std::uint64_t end = data.begin + data.size;
  if (position != end) throw JsonError(fmt::format("{} bytes behind the last tensor", end - position));
}

// Adds the tensor to the file, or to the tensors that are skipped. Returns its bytes.
Span parse_tensor(std::string_view name, JsonValue info, DataRange data, Safetensors* file) {
  const FileDType dtype = parse_dtype(member(info, "dtype").as_string());
  const Shape shape = parse_shape(info, dtype.own.value_or(DType::f64));
  const SkippedTensor foreign{std::string(name), dtype.own ? "" : dtype.foreign->name, shape};
  const std::string type = dtype.own ? to_string(Type{*dtype.own, shape}) : to_string(foreign);
  Span span{name, 0, stored_bytes(dtype, shape)};
  span.begin = parse_begin(info, type, span.size, data);
  if (dtype.own)
    file->tensors.push_back({foreign.name, {*dtype.own, shape}, span.begin});
  else
    file->skipped.push_back(foreign);
  return span;
}

Safetensors parse_header(std::string_view header, DataRange data) {
  Safetensors file;
  std::vector<Span> spans;
  const JsonDocument document(header);
  for (const auto& [name, value] : document.root().members()) {
    try {
      if (name == kSafetensorsMetadata) {
        for (const auto& [key, text] : value.members()) file.metadata.emplace(key, text.as_string());
      } else {
        spans.push_back(parse_tensor(name, value, data, &file));
      }
    } catch (const JsonError& e) {
      throw JsonError(fmt::format("{}: {}", shown(name), e.what()));
    }
  }
  check_tiling(std::move(spans), data);
  sort_by_place<TensorPlace>(file.tensors, [](const TensorPlace& t) { return t.size(); });
  std::sort(file.skipped.begin(), file.skipped.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < file.tensors.size(); ++i) file.by_name.emplace(file.tensors[i].name, i);
  return file;
}

// The bytes of data that the header describes: the end of the last tensor. 0 if the header cannot be read.
std::uint64_t described_bytes(std::string_view header) {
  std::int64_t most = 0;
  try {
    const JsonDocument document(header);
    for (const auto& [name, value] : document.root().members()) {
      if (name == kSafetensorsMetadata) continue;
      for (const JsonValue offset : member(value, "data_offsets").items()) most = std::max(most, offset.as_integer());
    }
  } catch (const JsonError&) {
    return 0;
  }
  return static_cast<std::uint64_t>(most);
}

// Whether a header stands behind the length, so that the length is not the beginning of some other file.
bool starts_with_brace(const ByteSource& file) {
  unsigned char first = 0;
  if (file.size() > kLengthBytes) file.read(kLengthBytes, {&first, 1});
  return first == '{';
}

// The fault of a header, and whether the cause is that the end of the file is lacking.
std::string fault_or_cut(std::string_view header, DataRange data, const std::string& fault) {
  const std::uint64_t described = described_bytes(header);
  if (described <= data.size) return fault;
  return fmt::format("it is cut off at byte {}, and its header describes {} bytes ({})", data.begin + data.size,
                     data.begin + described, fault);
}

// What a file of other bytes is by its first eight; empty if nothing is known of it.
std::string other_kind(std::uint64_t first_bytes) {
  char bytes[kLengthBytes];
  std::memcpy(bytes, &first_bytes, kLengthBytes);
  const std::string_view begins(bytes, kLengthBytes);
  if (begins.starts_with("PK\x03\x04")) return "it begins like a .npz file, which load_npz reads";
  if (begins.starts_with("\x93NUMPY")) return "it begins like a .npy file, which load_npy reads";
  if (begins.starts_with("\x1f\x8b")) return "it is packed by gzip";
  const bool is_text = std::all_of(begins.begin(), begins.end(),
                                   [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
  return is_text ? "it is text" : "";
}

void check_name(const std::string& name) {
  if (!valid_utf8(name)) throw UsageError(fmt::format("cannot be stored, not UTF-8: {}", shown(name)));
}

}  // namespace

const TensorPlace* Safetensors::find(const std::string& name) const {
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : &tensors[it->second];
}

Safetensors read_safetensors(const ByteSource& file) {
  const auto fail = [&](const std::string& reason) {
    throw FileError(fmt::format("{}: not a valid safetensors file: {}", file.path(), reason));
  };
  if (file.size() < kLengthBytes) fail(fmt::format("only {} bytes long; it is empty or cut off", file.size()));
  std::uint64_t length = 0;
  file.read(0, {reinterpret_cast<unsigned char*>(&length), kLengthBytes});
  if (const std::string kind = other_kind(length);
      length > file.size() - kLengthBytes && !kind.empty() && !starts_with_brace(file))
    fail(kind);
  if (length > kMaxHeaderBytes) fail(fmt::format("a header of {} bytes is too large", length));
  if (length > file.size() - kLengthBytes)
    fail(fmt::format("{}the header has {} bytes, the file only {}",
                     starts_with_brace(file) ? "it is cut off in its header: " : "", length, file.size()));
  // The length comes from the first read, so that it and the header are of one piece even if the file changes meanwhile.
  std::string whole(kLengthBytes + length, '\0');
  std::memcpy(whole.data(), &length, kLengthBytes);
  file.read(kLengthBytes, {reinterpret_cast<unsigned char*>(whole.data()) + kLengthBytes, length});
  const std::string_view header = std::string_view(whole).substr(kLengthBytes);
  if (!header.starts_with('{')) fail("the header does not start with '{'");
  const DataRange data{whole.size(), file.size() - whole.size()};
  Safetensors parsed;
  try {
    parsed = parse_header(header, data);
  } catch (const JsonError& e) {
    fail(fault_or_cut(header, data, e.what()));
  }
  parsed.length_and_header = std::move(whole);
  return parsed;
}

std::string safetensors_header(const std::vector<std::pair<std::string, std::string>>& metadata,
                               const std::vector<StoredTensor>& tensors, std::size_t multiple) {
  JsonWriter json;
  json.open('{');
  if (!metadata.empty()) {
    json.key(kSafetensorsMetadata).open('{');
    for (const auto& [key, text] : metadata) {
      check_name(key);
      check_name(text);
      json.key(key).value(text);
    }
    json.close('}');
  }
  std::int64_t offset = 0;
  for (const StoredTensor& t : tensors) {
    check_name(t.name);
    json.key(t.name).open('{').key("dtype").value(kDTypeNames[static_cast<int>(t.type.dtype)]).key("shape").open('[');
    for (const std::int64_t size : t.type.shape) json.value(size);
    json.close(']').key("data_offsets").open('[').value(offset);
    offset += static_cast<std::int64_t>(t.bytes.size());
    json.value(offset).close(']').close('}');
  }
  std::string header = json.close('}').take();
  while ((kLengthBytes + header.size()) % multiple != 0) header += ' ';
  if (header.size() > kMaxHeaderBytes) throw UsageError("too many tensors for one safetensors file");
  const std::uint64_t length = header.size();
  char prefix[kLengthBytes];
  std::memcpy(prefix, &length, kLengthBytes);
  return std::string(prefix, kLengthBytes) + header;
}

void check_bools(const Type& type, Bytes bytes, const std::string& name, const std::string& path) {
  if (type.dtype != DType::boolean || std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b <= 1; })) return;
  throw FileError(fmt::format("{}: {} is bool, but holds bytes other than 0 and 1", path, shown(name)));
}

// Not empty(): that has no data in abstract mode.
Tensor read_tensor(const ByteSource& file, const TensorPlace& place) {
  Tensor tensor(detail::new_impl(place.type, detail::new_storage(place.type.bytes())));
  const std::span<unsigned char> bytes(static_cast<unsigned char*>(tensor.impl()->data()), place.size());
  file.read(place.begin, bytes);
  check_bools(place.type, bytes, place.name, file.path());
  return tensor;
}

Bytes dense_bytes(const Tensor& tensor, std::vector<unsigned char>* copy) {
  const auto bytes = static_cast<std::size_t>(tensor.bytes());
  if (bytes == 0) return {};
  const bool on_device = !tensor.abstract() && tensor.impl()->storage->device;
  if (tensor.dense() && !on_device) return {static_cast<const unsigned char*>(tensor.data()), bytes};
  copy->resize(bytes);
  tensor.copy_to(copy->data(), bytes, dtype_size(tensor.dtype()));
  return *copy;
}

// ---- weight files ----

std::string to_string(const SkippedTensor& tensor) { return tensor.dtype + to_string(tensor.shape); }

const Tensor& TensorFile::at(const std::string& name) const {
  const auto it = tensors.find(name);
  if (it != tensors.end()) return it->second;
  for (const SkippedTensor& t : skipped)
    if (t.name == name)
      throw FileError(fmt::format("{}: tensor {} is {}, a dtype that cannot be loaded", path, shown(name), to_string(t)));
  throw FileError(fmt::format("{}: there is no tensor {}", path, shown(name)));
}

TensorFile load_tensor_file(const std::string& path) {
  const InputFile file(path);
  Safetensors parsed = read_safetensors(file);
  TensorFile loaded{path, {}, std::move(parsed.skipped), std::move(parsed.metadata)};
  for (const TensorPlace& place : parsed.tensors) loaded.tensors.emplace(place.name, read_tensor(file, place));
  file.check_unchanged();
  return loaded;
}

std::map<std::string, Tensor> load_safetensors(const std::string& path) { return load_tensor_file(path).tensors; }

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<StoredTensor> stored;
  std::deque<std::vector<unsigned char>> copies;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || tensor.abstract()) throw UsageError(fmt::format("tensor {} has no data to save", shown(name)));
    if (name == kSafetensorsMetadata) throw UsageError(fmt::format("no tensor can be named {}", name));
    stored.push_back({name, tensor.type(), dense_bytes(tensor, &copies.emplace_back())});
  }
  // Wide elements first, so that every tensor lies aligned to its own elements without padding.
  std::stable_sort(stored.begin(), stored.end(),
                   [](const auto& a, const auto& b) { return dtype_size(a.type.dtype) > dtype_size(b.type.dtype); });
  AtomicWriter writer(path);
  writer.write(safetensors_header({metadata.begin(), metadata.end()}, stored, kLengthBytes));
  for (const StoredTensor& t : stored) writer.write(t.bytes);
  writer.commit();
}

}  // namespace tapedeck
