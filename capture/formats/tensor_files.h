// Files of plain tensors: safetensors weights, NumPy arrays, raw bytes, and tensors that come through a pipe.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
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
bool npy_holds(DType dtype);  // NumPy has no bf16

// The arrays of an .npz file by name, without ".npy", as numpy.savez and numpy.savez_compressed write them. FileError, which
// names the array and its place in the file, for damage, for encrypted arrays, for compression other than deflate, and for
// archives of several parts. Compressed or not, the memory is at most 1032 times the file, the most that deflate can save.
std::map<std::string, Tensor> load_npz(const std::string& path);

// The elements and nothing else: dense, in C order, little endian. FileError if the file has another size, or a bool that is
// neither 0 nor 1.
Tensor load_raw(const std::string& path, const Type& type);

// Tensors that come one after the other through a pipe or from a terminal, each as .npy or as raw bytes: bytes that begin like
// .npy are read as that. Reading waits for bytes, and heeds interruptions.
class TensorStream {
 public:
  // REQUIRES: `fd` is open for reading, and stays open. `name` is for messages.
  TensorStream(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  // The next tensor; raw bytes are taken as one of `type`. Empty if the stream has ended before it. FileError if the stream
  // ends in the middle of one, and for .npy of another type.
  std::optional<Tensor> next(const Type& type);

 private:
  bool fill(std::size_t bytes);  // until that many wait in ahead_; false: the stream has ended before
  void wait_for_bytes() const;   // or for the end of it
  bool begins_like_npy() const;
  Tensor take_npy(const Type& type);

  int fd_;
  std::string name_;
  std::vector<unsigned char> ahead_;  // read, and not taken yet
};

}  // namespace TAPEDECK_API
