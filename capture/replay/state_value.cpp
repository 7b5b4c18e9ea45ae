#include <tapedeck/capture/replay/state_value.h>

#include <tapedeck/engine/eager/tensor_impl.h>

#include <utility>

namespace tapedeck::replay {

void StateValue::own() {
  if (bound.defined() || base) return;
  bytes_ = Buffer(count_, type.bytes());
  base = bytes_.data();
}

void StateValue::bind(Tensor tensor) {
  void* const data = tensor.impl()->data();
  tensor.impl()->storage->written_elsewhere = true;
  release();
  count_.adopt(tensor.bytes());
  bound = std::move(tensor);
  base = data;
}

bool StateValue::is_bound_to(const Tensor& tensor) const {
  return bound.defined() && bound.impl()->storage == tensor.impl()->storage && base == tensor.impl()->data() &&
         type == tensor.type();
}

bool StateValue::overlaps(const void* at, std::int64_t bytes) const {
  if (!bound.defined() || bytes == 0 || type.bytes() == 0) return false;
  const auto* const mine = static_cast<const char*>(base);
  const auto* const theirs = static_cast<const char*>(at);
  return mine < theirs + bytes && theirs < mine + type.bytes();
}

std::uint32_t StateValue::version() const { return bound.impl()->storage->version; }

void StateValue::note_write() {
  detail::Storage& storage = *bound.impl()->storage;
  ++storage.version;
  storage.written_at = {__builtin_FILE(), __builtin_LINE()};
}

void StateValue::release() {
  if (bound.defined()) count_.forget(type.bytes());  // the tensor may have got another dtype since (Module::to)
  bound = Tensor();
  bytes_ = Buffer();
  base = nullptr;
}

}  // namespace tapedeck::replay
