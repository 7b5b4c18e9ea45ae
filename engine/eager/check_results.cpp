// Checks the results of eager ops for NaN and infinity (TAPEDECK_CHECK_NAN), and lists the ops that run (TAPEDECK_DEBUG).
#include <tapedeck/engine/eager/dispatch_parts.h>
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tapedeck {

using detail::TensorImpl;

namespace {

std::vector<double> elements(const TensorImpl& t, Site site) {
  const CastAttrs attrs{DType::f64};
  const Type type{DType::f64, t.shape};
  TensorImpl* in[1] = {const_cast<TensorImpl*>(&t)};
  TensorImpl* out[1] = {detail::new_impl(type, detail::new_storage(type.bytes(), t.storage->device))};
  const Tensor owner(out[0]);
  run_kernel(ops::cast, in, 1, &attrs, out, 1, site);
  const auto bytes = static_cast<std::size_t>(type.bytes());
  std::vector<double> values(static_cast<std::size_t>(t.shape.numel()));
  if (EagerDevice* const device = out[0]->storage->device)
    device->read(values.data(), out[0]->resident_data(), bytes);
  else if (bytes > 0)
    std::memcpy(values.data(), out[0]->resident_data(), bytes);
  return values;
}

std::string types_of(const Call& c) {
  std::string text;
  for (int i = 0; i < c.n; ++i) text += fmt::format("{}{}", i ? ", " : "", to_string(c.in[i]->type()));
  return text;
}

void check_finite(const Call& c, const TensorImpl& result) {
  const std::vector<double> values = elements(result, c.site);
  const auto bad = std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  if (bad == values.end()) return;
  throw ExecutionError(error_text(c.op.name,
                                  fmt::format("made {} at element {} of {} from ({})", std::isnan(*bad) ? "NaN" : "an infinity",
                                              bad - values.begin(), to_string(result.type()), types_of(c)),
                                  c.site));
}

void list(const Call& c, TensorImpl* const* out, bool with_values) {
  std::string line = fmt::format("tapedeck: {}({})", c.op.name, types_of(c));
  for (int i = 0; i < c.n_out; ++i) {
    line += fmt::format("{} {}", i ? "," : " ->", to_string(out[i]->type()));
    if (!with_values || out[i]->shape.numel() == 0) continue;
    const std::vector<double> values = elements(*out[i], c.site);
    double total = 0;
    for (double v : values) total += v;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    line += fmt::format(" in [{:.4g}, {:.4g}] mean {:.4g}", *least, *most, total / static_cast<double>(values.size()));
  }
  if (c.site.line) line += fmt::format("  {}:{}", c.site.file, c.site.line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace

void watch_results(const Call& c, TensorImpl* const* out) {
  const Settings& s = settings();
  if (s.debug >= 3) list(c, out, s.debug >= 4);
  if (!s.check_nan) return;
  for (int i = 0; i < c.n_out; ++i)
    if (is_floating(out[i]->dtype)) check_finite(c, *out[i]);
}

}  // namespace tapedeck
