// The safetensors container. Both .tape files and weight files are such containers.
//
//     u64 N, little endian | N bytes of JSON header, starting with '{', spaces allowed behind | data
//     header: {"__metadata__": {string: string}, NAME: {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, ...}
//
// Offsets count from the start of the data; the tensors fill the data without holes or overlaps; C order, little endian.
#pragma once

#include <tapedeck/capture/formats/byte_source.h>
#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tapedeck {

inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// ---- reading ----

// The place of a tensor in a file.
struct TensorPlace {
  std::string name;
  Type type;
  std::uint64_t begin = 0;  // counted from the start of the file
  std::uint64_t size() const { return static_cast<std::uint64_t>(type.bytes()); }
};

struct Safetensors {
  std::string length_and_header;  // as in the file
  std::map<std::string, std::string> metadata;
  std::vector<TensorPlace> tensors;    // in the order of their data
  std::vector<SkippedTensor> skipped;  // of dtypes that are not ours, by name
  std::unordered_map<std::string, std::size_t> by_name;
  const TensorPlace* find(const std::string& name) const;  // null if there is none
};

// Reads the header alone. Throws FileError, naming the file and the reason, unless every rule above holds for all tensors, the
// header is at most 100 MB, no key appears twice, ranks are at most kMaxRank and dtypes are of the format. Dtypes of the format
// that are not ours (see SkippedTensor) go through the same checks.
Safetensors read_safetensors(const ByteSource& file);

// Reads the data of a tensor into memory of its own. Throws FileError if a bool is neither 0 nor 1.
Tensor read_tensor(const ByteSource& file, const TensorPlace& place);
void check_bools(const Type& type, Bytes bytes, const std::string& name, const std::string& path);

// ---- writing ----

struct StoredTensor {
  std::string name;
  Type type;
  Bytes bytes;
};

// The bytes before the data: length and header, padded with spaces to a multiple of `multiple` bytes. Metadata comes first and
// both keep the order given. The data that must follow is the bytes of all tensors, in order. Throws UsageError for names that
// are not UTF-8.
std::string safetensors_header(const std::vector<std::pair<std::string, std::string>>& metadata,
                               const std::vector<StoredTensor>& tensors, std::size_t multiple);

// The tensor's elements in C order: its own memory if it is dense, else a copy put into `copy`. REQUIRES: not abstract.
Bytes dense_bytes(const Tensor& tensor, std::vector<unsigned char>* copy);

}  // namespace tapedeck
