// Files of plain tensors: safetensors weights and NumPy arrays.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A tensor of a file whose dtype has no counterpart here: I8 I16 U16 U32 U64 C64, and the floats of 8, 6 and 4 bits (F8_E4M3,
// F8_E5M2, ...).
struct SkippedTensor {
  std::string name, dtype;
  Shape shape;
};
std::string to_string(const SkippedTensor& tensor);  // "I8[2,3]"

// The contents of a safetensors file.
struct TensorFile {
  std::string path;
  std::map<std::string, Tensor> tensors;  // F32 F64 F16 BF16 I32 I64 U8 BOOL
  std::vector<SkippedTensor> skipped;     // all others, by name; their bytes were not read
  std::map<std::string, std::string> metadata;
  // The tensor of this name. Throws FileError that names the file, if the tensor was skipped or is not there.
  const Tensor& at(const std::string& name) const;
};

// Throws FileError that names the file and the reason. Skipped tensors are no error, but what the header says of them is
// checked as for all others.
TensorFile load_tensor_file(const std::string& path);

// The tensors of load_tensor_file(). Saving writes beside `path`, syncs, then renames: a full disk leaves the old file as it
// was.
std::map<std::string, Tensor> load_safetensors(const std::string& path);
void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// One .npy array (versions 1 to 3, little endian). Arrays in Fortran order are turned into C order. Throws FileError; saves as
// above.
Tensor load_npy(const std::string& path);
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace TAPEDECK_API
