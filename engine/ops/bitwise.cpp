#include <tapedeck/engine/ops/bitwise.h>

#include <tapedeck/engine/ir/infer.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

bool is_integer(DType d) { return d == DType::i32 || d == DType::i64 || d == DType::u8; }

void infer_shift(Infer& f) {
  for (const Type& t : f.inputs)
    if (!is_integer(t.dtype)) f.fail(fmt::format("needs integers, got {}", to_string(t)));
  infer_broadcast(f);
}

void infer_bits(Infer& f) {
  for (const Type& t : f.inputs)
    if (!is_integer(t.dtype) && t.dtype != DType::boolean) f.fail(fmt::format("needs integers or bools, got {}", to_string(t)));
  infer_broadcast(f);
}

void infer_bools(Infer& f) {
  for (const Type& t : f.inputs)
    if (t.dtype != DType::boolean) f.fail(fmt::format("needs bools, got {}", to_string(t)));
  infer_broadcast(f);
}

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/bitwise.h>
