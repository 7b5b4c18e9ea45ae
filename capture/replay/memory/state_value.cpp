#include <tapedeck/capture/replay/memory/state_value.h>

#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/tensor_impl.h>

#include <utility>

namespace tapedeck::replay {

EagerDevice* device_of(const Tensor& tensor) { return tensor.abstract() ? nullptr : tensor.impl()->storage->device; }

void* bytes_of(const Tensor& tensor) { return device_of(tensor) ? tensor.impl()->resident_data() : tensor.impl()->data(); }

void StateValue::own() {
  if (bound.defined() || base) return;
  bytes_ = Buffer(count_, type.bytes());
  base = bytes_.data();
}

void StateValue::bind(Tensor tensor) {
  detail::Storage& storage = *tensor.impl()->storage;
  detail::before_write(storage, "replay", {});
  release();
  counted_ = !device_of(tensor);
  if (counted_) count_.adopt(tensor.bytes());
  ++storage.replays;
  bound_storage_ = &storage;
  bound = std::move(tensor);
  base = bound.impl()->resident_data();
}

bool StateValue::is_bound_to(const Tensor& tensor) const {
  return bound.defined() && bound.impl()->storage == tensor.impl()->storage && base == bytes_of(tensor) &&
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
  if (bound.defined()) {  // the tensor may have got another dtype and other bytes since (Module::to)
    if (counted_) count_.forget(type.bytes());
    if (bound.impl()->storage == bound_storage_) --bound_storage_->replays;
  }
  bound = Tensor();
  bytes_ = Buffer();
  base = nullptr;
}

}  // namespace tapedeck::replay
