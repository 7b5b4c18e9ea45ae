// .npy:  "\x93NUMPY" | major, minor | header length (u16 in version 1, u32 in 2 and 3) | header | data
// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } with spaces and a newline
// behind.
#include <tapedeck/capture/formats/npy.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/tensor_impl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxNpyHeaderBytes = 1 << 16;

struct NpyDescriptor {
  const char* text;
  DType dtype;
};
constexpr NpyDescriptor kDescriptors[] = {{"<f4", DType::f32}, {"<f8", DType::f64}, {"<f2", DType::f16},    {"<i4", DType::i32},
                                          {"<i8", DType::i64}, {"|u1", DType::u8},  {"|b1", DType::boolean}};

// The Python literals that a header may hold. Throws FileError with the position.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      member(key);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!text_.empty()) fail("something behind the header's dictionary");
    if (!has_descr_ || !has_order_ || !has_shape_) fail("the header lacks descr, fortran_order or shape");
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: not a readable .npy file: {}", path_, reason));
  }

  DType dtype = DType::f32;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;

 private:
  void member(std::string_view key) {
    if (key == "descr" && !std::exchange(has_descr_, true))
      descr();
    else if (key == "fortran_order" && !std::exchange(has_order_, true))
      order();
    else if (key == "shape" && !std::exchange(has_shape_, true))
      sizes();
    else
      fail(fmt::format("unexpected or repeated key {}", shown(key)));
  }
  void descr() {
    if (!text_.empty() && peek() == '[') fail("records are not supported");
    const std::string_view name = quoted();
    for (const NpyDescriptor& d : kDescriptors)
      if (name == d.text) {
        dtype = d.dtype;
        return;
      }
    fail(fmt::format("dtype {} is not supported (little endian f2 f4 f8 i4 i8 u1 b1 are)", shown(name)));
  }
  void order() {
    fortran_order = word("True");
    if (!fortran_order && !word("False")) fail("fortran_order is neither True nor False");
  }
  void sizes() {
    expect('(');
    while (!accept(')')) {
      if (shape.size() == kMaxRank) fail(fmt::format("rank above {}", kMaxRank));
      shape.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  std::int64_t number() {
    skip_spaces();
    std::int64_t n = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && std::isdigit(static_cast<unsigned char>(text_[digits])); ++digits) {
      if (digits >= 18) fail("a size is too large");
      n = n * 10 + (text_[digits] - '0');
    }
    if (digits == 0) fail("a size is not a number");
    text_.remove_prefix(digits);
    return n;
  }
  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a string should be here");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) fail("a string does not end");
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }
  bool word(std::string_view wanted) {
    skip_spaces();
    if (text_.substr(0, wanted.size()) != wanted) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  bool accept(char c) { return word({&c, 1}); }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' should be here: {}", c, shown(text_)));
  }
  char peek() {
    skip_spaces();
    return text_.empty() ? '\0' : text_[0];
  }
  void skip_spaces() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_[0]))) text_.remove_prefix(1);
  }

  std::string_view text_;
  const std::string& path_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

// Fortran order counts the first index fastest: walk the C order and fetch from there.
std::vector<unsigned char> to_c_order(const Type& type, Bytes data) {
  const std::size_t item = dtype_size(type.dtype);
  std::vector<unsigned char> out(data.size());
  std::int64_t index[kMaxRank] = {}, strides[kMaxRank] = {};
  std::int64_t stride = 1;
  for (int d = 0; d < type.shape.rank; stride *= type.shape[d++]) strides[d] = stride;
  for (std::size_t i = 0; i < out.size(); i += item) {
    std::int64_t from = 0;
    for (int d = 0; d < type.shape.rank; ++d) from += index[d] * strides[d];
    std::memcpy(&out[i], &data[static_cast<std::size_t>(from) * item], item);
    for (int d = type.shape.rank - 1; d >= 0 && ++index[d] == type.shape[d]; --d) index[d] = 0;
  }
  return out;
}

struct Header {
  std::string text;
  std::uint64_t end = 0;  // where the data begins
};

// The length comes from the first read, so that a file that grows or changes meanwhile does no harm.
Header read_header(const ByteSource& file) {
  const auto fail = [&](const char* reason) {
    throw FileError(fmt::format("{}: not a readable .npy file: {}", file.path(), reason));
  };
  unsigned char start[12] = {};
  if (file.size() < 10) fail("it does not start like one");
  file.read(0, {start, static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), sizeof start))});
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0) fail("it does not start like one");
  const int major = start[6];
  if (major < 1 || major > 3) fail("its format version is none of 1, 2, 3");
  const std::size_t begin = major == 1 ? 10 : 12;
  if (file.size() < begin) fail("truncated");
  std::uint32_t length = 0;
  std::memcpy(&length, start + 8, begin - 8);
  if (length > kMaxNpyHeaderBytes) fail("its header is too long");
  if (length > file.size() - begin) fail("truncated in the header");
  Header header{std::string(length, '\0'), begin + length};
  file.read(begin, {reinterpret_cast<unsigned char*>(header.text.data()), length});
  return header;
}

const char* find_descriptor(DType dtype) {
  for (const NpyDescriptor& d : kDescriptors)
    if (d.dtype == dtype) return d.text;
  return nullptr;
}

const char* descriptor(DType dtype) {
  if (const char* text = find_descriptor(dtype)) return text;
  throw UsageError(fmt::format("NumPy has no dtype for {}", dtype_name(dtype)));
}

}  // namespace

Tensor read_npy(const ByteSource& file) {
  const Header start = read_header(file);
  HeaderParser header(start.text, file.path());
  header.parse();
  const std::int64_t bytes = checked_bytes(header.dtype, header.shape);
  if (bytes < 0) header.fail("the array is too large");
  const Type type{header.dtype, Shape(std::span<const std::int64_t>(header.shape))};
  const std::uint64_t there = file.size() - start.end;
  if (std::cmp_not_equal(bytes, there))
    header.fail(fmt::format("{}{} takes {} bytes, {} follow the header",
                            std::cmp_less(there, bytes) ? fmt::format("it is cut off at byte {}: ", file.size()) : "",
                            to_string(type), bytes, there));
  const Tensor array = read_tensor(file, {"the array", type, start.end});
  if (!header.fortran_order || type.shape.rank < 2) return array;
  const Bytes data(static_cast<const unsigned char*>(array.impl()->data()), static_cast<std::size_t>(bytes));
  return from_bytes(type, to_c_order(type, data).data());
}

bool npy_holds(DType dtype) { return find_descriptor(dtype) != nullptr; }

Tensor load_npy(const std::string& path) {
  const InputFile file(path);
  Tensor array = read_npy(file);
  file.check_unchanged();
  return array;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  if (!tensor.defined() || tensor.abstract()) throw UsageError("save_npy: the tensor has no data");
  std::string sizes;
  for (const std::int64_t size : tensor.shape()) sizes += fmt::format("{}, ", size);
  if (tensor.rank() > 1) sizes.resize(sizes.size() - 2);  // (2, 3), but (2,)
  if (tensor.rank() == 1) sizes.pop_back();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor(tensor.dtype()), sizes);
  const std::size_t start = kMagic.size() + 4;
  header.resize((start + header.size() + 1 + 63) / 64 * 64 - start - 1, ' ');
  header += '\n';
  std::vector<unsigned char> copy;
  AtomicWriter writer(path);
  writer.write(kMagic);
  writer.write(std::string{'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)});
  writer.write(header);
  writer.write(dense_bytes(tensor, &copy));
  writer.commit();
}

}  // namespace tapedeck
