// The safetensors container over plain bytes, in memory. Both .tape files and weight files are such containers.
//
//     u64 N, little endian | N bytes of JSON header, starting with '{', spaces allowed behind | data
//     header: {"__metadata__": {string: string}, NAME: {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, ...}
//
// Offsets count from the start of the data; the tensors fill the data without holes or overlaps; C order, little endian.
#pragma once

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/engine/eager/tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tapedeck {

inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// A tensor in a file: a window on the bytes of the file.
struct StoredTensor {
  std::string name;
  Type type;
  Bytes bytes;
};

struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  // in the order of their data
  std::unordered_map<std::string, std::size_t> by_name;
  const StoredTensor* find(const std::string& name) const;  // null if there is none
};

// The tensors are windows on `file`. Throws FileError, naming `path` and the reason, unless every rule above holds, the header
// is at most 100 MB, no key appears twice, ranks are at most kMaxRank and dtypes are ours (F32 F64 F16 BF16 I32 I64 U8 BOOL).
Safetensors parse_safetensors(Bytes file, const std::string& path);

// The bytes before the data: length and header, padded with spaces to a multiple of `multiple` bytes. Metadata comes first and
// both keep the order given. The data that must follow is the bytes of all tensors, in order. Throws UsageError for names that
// are not UTF-8.
std::string safetensors_header(const std::vector<std::pair<std::string, std::string>>& metadata,
                               const std::vector<StoredTensor>& tensors, std::size_t multiple);

// A copy of the data. Throws FileError if a bool is neither 0 nor 1.
Tensor to_tensor(const StoredTensor& stored, const std::string& path);
void check_bools(const Type& type, Bytes bytes, const std::string& name, const std::string& path);

// The tensor's elements in C order: its own memory if it is dense, else a copy put into `copy`. REQUIRES: not abstract.
Bytes dense_bytes(const Tensor& tensor, std::vector<unsigned char>* copy);

}  // namespace tapedeck
