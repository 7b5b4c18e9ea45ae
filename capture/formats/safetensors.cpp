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
#include <tuple>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of other readers of the format
constexpr std::size_t kLengthBytes = 8;
constexpr const char* kDTypeNames[kDTypeCount] = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8", "BOOL"};

DType parse_dtype(std::string_view name) {
  for (int d = 0; d < kDTypeCount; ++d)
    if (name == kDTypeNames[d]) return static_cast<DType>(d);
  throw JsonError(fmt::format("dtype {} is not supported", shown(name)));
}

JsonValue member(JsonValue object, std::string_view key) {
  if (auto value = object.find(key)) return *value;
  throw JsonError(fmt::format("{} is missing", shown(key)));
}

Type parse_type(JsonValue info) {
  const DType dtype = parse_dtype(member(info, "dtype").as_string());
  const JsonValue shape = member(info, "shape");
  std::int64_t sizes[kMaxRank];
  std::size_t rank = 0;
  for (const JsonValue size : shape.items()) {
    if (rank == kMaxRank) throw JsonError(fmt::format("rank {} is above {}", shape.size(), kMaxRank));
    sizes[rank++] = size.as_integer();
  }
  const std::span<const std::int64_t> dims(sizes, rank);
  if (checked_bytes(dtype, dims) < 0) throw JsonError("a size is negative, or the tensor is larger than 64 TiB");
  return {dtype, Shape(dims)};
}

// The place of the data in the file.
struct DataRange {
  std::uint64_t begin = 0, size = 0;
};

// Where the tensor begins in the file; it is inside the data, and exactly as long as its type says.
std::uint64_t parse_begin(JsonValue info, const Type& type, DataRange data) {
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
  if (end - begin != type.bytes())
    throw JsonError(fmt::format("{} takes {} bytes, data_offsets give {}", to_string(type), type.bytes(), end - begin));
  return data.begin + static_cast<std::uint64_t>(begin);
}

void check_tiling(std::vector<TensorPlace>& tensors, DataRange data) {
  const auto place = [](const TensorPlace& t) { return std::tuple(t.begin, t.size()); };
  std::stable_sort(tensors.begin(), tensors.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  std::uint64_t position = data.begin;
  for (const TensorPlace& t : tensors) {
    if (t.begin < position) throw JsonError(fmt::format("tensor {} overlaps the one before it", shown(t.name)));
    if (t.begin > position)
      throw JsonError(fmt::format("there is a hole of {} bytes before tensor {}", t.begin - position, shown(t.name)));
    position = t.begin + t.size();
  }
  const std::uint64_t end = data.begin + data.size;
  if (position != end) throw JsonError(fmt::format("{} bytes behind the last tensor", end - position));
}

Safetensors parse_header(std::string_view header, DataRange data) {
  Safetensors file;
  const JsonDocument document(header);
  for (const auto& [name, value] : document.root().members()) {
    try {
      if (name == kSafetensorsMetadata) {
        for (const auto& [key, text] : value.members()) file.metadata.emplace(key, text.as_string());
      } else {
        const Type type = parse_type(value);
        file.tensors.push_back({std::string(name), type, parse_begin(value, type, data)});
      }
    } catch (const JsonError& e) {
      throw JsonError(fmt::format("{}: {}", shown(name), e.what()));
    }
  }
  check_tiling(file.tensors, data);
  for (std::size_t i = 0; i < file.tensors.size(); ++i) file.by_name.emplace(file.tensors[i].name, i);
  return file;
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
  if (file.size() < kLengthBytes) fail(fmt::format("only {} bytes long", file.size()));
  std::uint64_t length = 0;
  file.read(0, {reinterpret_cast<unsigned char*>(&length), kLengthBytes});
  if (length > kMaxHeaderBytes) fail(fmt::format("a header of {} bytes is too large", length));
  if (length > file.size() - kLengthBytes) fail(fmt::format("the header has {} bytes, the file only {}", length, file.size()));
  // The length comes from the first read, so that it and the header are of one piece even if the file changes meanwhile.
  std::string whole(kLengthBytes + length, '\0');
  std::memcpy(whole.data(), &length, kLengthBytes);
  file.read(kLengthBytes, {reinterpret_cast<unsigned char*>(whole.data()) + kLengthBytes, length});
  const std::string_view header = std::string_view(whole).substr(kLengthBytes);
  if (!header.starts_with('{')) fail("the header does not start with '{'");
  Safetensors parsed;
  try {
    parsed = parse_header(header, {whole.size(), file.size() - whole.size()});
  } catch (const JsonError& e) {
    fail(e.what());
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
  if (tensor.dense()) return {static_cast<const unsigned char*>(tensor.data()), bytes};
  copy->resize(bytes);
  tensor.copy_to(copy->data(), bytes, dtype_size(tensor.dtype()));
  return *copy;
}

// ---- weight files ----

std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  const InputFile file(path);
  std::map<std::string, Tensor> tensors;
  for (const TensorPlace& place : read_safetensors(file).tensors) tensors.emplace(place.name, read_tensor(file, place));
  file.check_unchanged();
  return tensors;
}

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
