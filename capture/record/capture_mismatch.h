// The error of a step that is another program than its capture. Beside the message it has the kind of the first difference,
// and what each side has there.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tapedeck TAPEDECK_API {

// What differs between a capture and a later call of the step. If an operand is another value, the kind says what the operand
// was in the capture.
enum class MismatchKind : std::uint8_t {
  op,               // another op
  op_count,         // more ops, or fewer
  operand_count,    // the op has more operands, or fewer
  type,             // the dtype or the shape of an operand or of a result of an op
  attribute,        // an attribute of the op, or a loop body or branch of it
  input,            // the operand was an input of the step
  internal_value,   // the operand was computed by an op of the step
  external_tensor,  // a tensor from outside, such as a parameter, is another tensor; or they are others in number
  constant,         // the operand was a constant, and is one with other bytes or no constant
  result_count,     // the step returns more results, or fewer
  result,           // a result of the step is another value
  write,            // the step wrote something else into a tensor from outside, or did not write it
};
const char* mismatch_name(MismatchKind kind);  // for example "internal value"

// One side of a difference. `name` is the op, the type, the attribute, the value ("%h"), or the tensor that differs, or a
// number such as "2 results". `site` is the place of the user's call, "train.cpp:12"; empty if the difference has no place.
struct MismatchSide {
  std::string name;
  std::string site;
};

// Thrown by checked calls, and by the second recording of a captured step. An error can be copied without an exception.
class CaptureMismatch : public CaptureError {
 public:
  CaptureMismatch(MismatchKind kind, MismatchSide captured, MismatchSide called, ErrorText text)
      : CaptureError(std::move(text)),
        difference_(std::make_shared<const Difference>(Difference{kind, std::move(captured), std::move(called)})) {}
  const char* kind() const noexcept override { return "CaptureMismatch"; }
  MismatchKind mismatch() const noexcept { return difference_->kind; }
  const MismatchSide& captured() const noexcept { return difference_->captured; }  // in the capture, or in the first call
  const MismatchSide& called() const noexcept { return difference_->called; }      // in the call that threw

 private:
  struct Difference {
    MismatchKind kind;
    MismatchSide captured, called;
  };
  std::shared_ptr<const Difference> difference_;
};

}  // namespace TAPEDECK_API
