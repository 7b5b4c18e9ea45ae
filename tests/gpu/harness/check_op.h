// Compares the kernels of a device with those of the CPU, on the examples of the op blocks and on examples of our own.
#pragma once

#include <tapedeck/tests/engine/all_ops.h>
#include <tapedeck/tests/gpu/harness/device.h>
#include <tapedeck/tests/gpu/harness/op_call.h>

#include <set>
#include <span>
#include <string>
#include <vector>

namespace tapedeck::gpu {

struct Findings {
  std::vector<std::string> wrong;  // one line for each failure
  std::set<std::string> notes;     // facts that are no failures, such as a type that the kernel does not take
  int calls = 0;                   // kernels started
  void add(const Findings& other);
  std::string text() const;  // the first failures, and the number of the others
};

// The rule by which a result is compared. Results that are no floating numbers must have the bits of the CPU in any case.
enum class Rule {
  bits,      // the bits of the CPU: movement, draws
  near_cpu,  // elementwise ops: the bits of the CPU, or close to them where both call a math library, which is noted
  near_f64,  // close to the result of the CPU's kernel in f64
};
Rule rule_of(const Op& op);

// The extent of the checks.
struct Effort {
  bool strides = true;  // all arrangements, otherwise dense operands only
  bool types = true;    // all types that the op takes, otherwise f32
  bool larger = true;   // larger operands too
  int examples = 1000;  // at most so many examples
  bool twice = true;    // each call runs twice, and both runs must give the same bits
};

// Every example of the op.
Findings check_op(Device& device, const Op& op, const Effort& effort = {});
// One example, written as in an op block: "sum(f32[1000,77]) {axes=[0]}".
Findings check_example(Device& device, const std::string& text, std::span<const DType> reals);

}  // namespace tapedeck::gpu
