#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/accumulate.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void require_numbers(const Infer& f) {
  if (f.inputs[0].dtype == DType::boolean) f.fail("no sums of bools; cast them first");
}

void infer_add_n(Infer& f) {
  require_numbers(f);
  infer_like_first(f);
}

void infer_addcmul(Infer& f) {
  require_numbers(f);
  if (infer_broadcast_shape(f, 1) != f.inputs[0].shape || f.inputs[1].dtype != f.inputs[0].dtype)
    f.fail(fmt::format("the product of {} and {} is no {}", to_string(f.inputs[1]), to_string(f.inputs[2]),
                       to_string(f.inputs[0])));
  infer_same(f);
}

void infer_addmm(Infer& f) {
  std::vector<Type> product;
  infer_types(ops::matmul, f.inputs.subspan(1), nullptr, product);
  if (product[0] != f.inputs[0])
    f.fail(fmt::format("the product is {}, the sum {}", to_string(product[0]), to_string(f.inputs[0])));
  infer_same(f);
}

Cost cost_addmm(std::span<const Type> in, std::span<const Type> out, const void*) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = (2.0 * static_cast<double>(in[1].shape[in[1].shape.rank - 1]) + 1) * static_cast<double>(out[0].numel());
  return cost;
}

struct Accumulating {
  const char* op;
  const char* form;
};
// Ops and their accumulating forms. A product in f16 or bf16 is rounded before it is added. addmm rounds it too; an op that
// runs in f32 rounds only once, so accumulating_form() returns no form for it.
constexpr Accumulating kForms[] = {{"matmul", "addmm"}, {"mul", "addcmul"}};

}  // namespace

Tensor add_n(const std::vector<Tensor>& tensors, Site site) { return apply_all(ops::add_n, tensors, nullptr, site)[0]; }

Tensor addcmul(const Arg& sum, const Tensor& a, const Tensor& b) {
  return apply(ops::addcmul, {&sum.tensor(), &a, &b}, nullptr, sum.site());
}

Tensor addmm(const Arg& sum, const Tensor& a, const Tensor& b) {
  return apply(ops::addmm, {&sum.tensor(), &a, &b}, nullptr, sum.site());
}

std::vector<std::pair<const Op*, const Op*>> accumulating_forms() {
  std::vector<std::pair<const Op*, const Op*>> forms;
  for (const Accumulating& a : kForms) forms.emplace_back(find_op(a.op), find_op(a.form));
  return forms;
}

const Op* accumulating_form(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs) {
  static const std::vector<std::pair<const Op*, const Op*>> forms = accumulating_forms();
  if (outputs.size() != 1 || runs_in_f32(op, inputs, outputs)) return nullptr;
  for (const auto& [declared, form] : forms)
    if (declared == &op) return form;
  return nullptr;
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/accumulate.h>
