// Files of plain tensors: safetensors weights and NumPy arrays.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <string>

namespace tapedeck TAPEDECK_API {

// The tensors of a safetensors file, by name (F32 F64 F16 BF16 I32 I64 U8 BOOL). Throws FileError that names the file and the
// reason. Saving writes beside `path`, syncs, then renames: a full disk leaves the old file as it was.
std::map<std::string, Tensor> load_safetensors(const std::string& path);
void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// One .npy array (versions 1 to 3, little endian). Arrays in Fortran order are turned into C order. Throws FileError; saves as
// above.
Tensor load_npy(const std::string& path);
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace TAPEDECK_API
