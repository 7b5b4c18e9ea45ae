#include <tapedeck/engine/gradient/fresh_gradient.h>

#include <tapedeck/engine/eager/marked_extra.h>

namespace tapedeck {

bool grad_is_fresh(const Tensor& t) { return t.grad().defined() && detail::fresh_mark(*t.impl()); }

void mark_grad_used(const Tensor& t) {
  if (t.grad().defined()) detail::fresh_mark(*t.impl()) = false;
}

void mark_grad_fresh(const Tensor& t, Site site) {
  if (!t.grad().defined()) throw UsageError(error_text("mark_grad_fresh", "the tensor has no gradient", site));
  detail::fresh_mark(*t.impl()) = true;
}

}  // namespace tapedeck
