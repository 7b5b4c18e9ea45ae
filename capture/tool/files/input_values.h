// The values of inputs that the command line gives: one for all steps, or a new one for each step.
#pragma once

#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::tool {

// A file for each step, in the order of their names, from the first again after the last; or what stdin gives, where a single
// value serves all steps.
class InputSequence {
 public:
  InputSequence(std::string name, const Type& type, std::vector<std::string> files);
  InputSequence(std::string name, const Type& type, std::shared_ptr<TensorStream> stream);

  std::size_t files() const { return files_.size(); }  // 0: a stream
  const std::string& name() const { return name_; }
  // The value of the step: call for 0, 1, 2 and so on. Undefined: the same as before. Throws FileError, TypeError.
  Tensor at(std::int64_t step);

 private:
  Tensor checked(Tensor value, const std::string& from) const;

  std::string name_;
  Type type_;
  std::vector<std::string> files_;
  std::shared_ptr<TensorStream> stream_;
  bool is_single_ = false;  // the stream held one value
};

// The value that the user writes behind NAME= on the command line.
struct GivenInput {
  Tensor value;                             // for all steps, or
  std::unique_ptr<InputSequence> sequence;  // a new one for each
};

// rand:SEED, zeros, - (stdin), a file, a folder, or a pattern of files; @ may stand before a file. Throws UsageError,
// FileError, TypeError.
GivenInput given_input(const std::string& text, const std::string& name, const Type& type);

// The files that these --input options read, for check_outputs().
std::vector<std::string> files_of_inputs(const std::vector<std::string>& options);

}  // namespace tapedeck::tool
