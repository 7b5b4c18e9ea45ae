// The layout of buffers in blocks of device memory, and the memory itself: the blocks, and pinned memory of the host.
#include <tapedeck/capture/replay/device/device_memory.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <utility>

namespace tapedeck::replay {

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + DeviceLayout::kAlignment - 1) / DeviceLayout::kAlignment * DeviceLayout::kAlignment;
}

}  // namespace

// ---- the layout ----

DeviceLayout::DeviceLayout(const BufferTable& buffers, std::int64_t scratch_bytes)
    : places(static_cast<std::size_t>(buffers.count()) + 1) {
  for (BufferId b = 0; b < buffers.count(); ++b)
    if (buffers.is_chunk(b))
      add_block(b, buffers.chunks.count() == 1 ? "the arena" : fmt::format("chunk {} of the arena", buffers.chunk_of(b)),
                buffers.bytes[b]);
  state_block = static_cast<std::int32_t>(blocks.size());
  blocks.push_back({"state", 0});
  for (BufferId b = 0; b < buffers.count(); ++b)
    if (buffers.is_state(b)) place_in_last(b, buffers.bytes[b]);
  blocks.push_back({"inputs, constants and outputs", 0});
  for (BufferId b = 0; b < buffers.count(); ++b)
    if (!buffers.is_state(b) && !buffers.is_chunk(b)) place_in_last(b, buffers.bytes[b]);
  add_block(buffers.count(), "scratch of kernels", scratch_bytes);
}

void DeviceLayout::add_block(BufferId b, std::string name, std::int64_t bytes) {
  blocks.push_back({std::move(name), 0});
  place_in_last(b, bytes);
}

void DeviceLayout::place_in_last(BufferId b, std::int64_t bytes) {
  if (bytes <= 0) return;
  places[b] = {static_cast<std::int32_t>(blocks.size()) - 1, blocks.back().bytes};
  blocks.back().bytes += aligned(bytes);
}

std::int64_t DeviceLayout::bytes() const {
  std::int64_t sum = 0;
  for (const Block& block : blocks) sum += block.bytes;
  return sum;
}

// ---- the memory ----

DeviceMemory::DeviceMemory(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, const DeviceLayout& layout, bool state_later)
    : runtime_(std::move(runtime)), bases_(layout.places.size(), nullptr) {
  try {
    for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
      const bool later = state_later && static_cast<std::int32_t>(i) == layout.state_block;
      blocks_.push_back(later ? nullptr : allocate(layout.blocks[i]));
    }
  } catch (...) {
    release();
    throw;
  }
  for (std::size_t b = 0; b < bases_.size(); ++b)
    if (const DeviceLayout::Place& place = layout.places[b]; place.block != kNone && blocks_[place.block])
      bases_[b] = static_cast<char*>(blocks_[place.block]) + place.offset;
}

DeviceMemory::~DeviceMemory() { release(); }

void* DeviceMemory::allocate(const DeviceLayout::Block& block) {
  if (block.bytes == 0) return nullptr;
  void* memory = nullptr;
  if (const char* error = runtime_->allocate(static_cast<std::size_t>(block.bytes), &memory)) {
    std::size_t free_bytes = 0, total_bytes = 0;
    const bool known = !runtime_->memory_info(&free_bytes, &total_bytes);
    throw ExecutionError(
        fmt::format("{}, {} bytes, cannot be had on the device: {}{}", block.name, block.bytes, error,
                    known ? fmt::format("; {} of its {} bytes are free", free_bytes, total_bytes) : std::string()));
  }
  allocated_bytes_ += block.bytes;
  return memory;
}

bool DeviceMemory::place_state(const BufferTable& buffers, const std::vector<void*>& elsewhere) {
  if (own_state_.empty())
    for (std::size_t s = 0; s < elsewhere.size(); ++s)
      own_state_.push_back(bases_[buffers.state(static_cast<std::int32_t>(s))]);
  allocate_state(buffers, elsewhere);
  bool changed = false;
  for (std::size_t s = 0; s < elsewhere.size(); ++s) {
    void*& base = bases_[buffers.state(static_cast<std::int32_t>(s))];
    void* const now = elsewhere[s] ? elsewhere[s] : own_state_[s];
    changed |= base != now;
    base = now;
  }
  return changed;
}

// One block for all slots that need memory and have none.
void DeviceMemory::allocate_state(const BufferTable& buffers, const std::vector<void*>& elsewhere) {
  DeviceLayout::Block block{"state", 0};
  std::vector<std::pair<std::size_t, std::int64_t>> offsets;
  for (std::size_t s = 0; s < elsewhere.size(); ++s) {
    const std::int64_t bytes = buffers.bytes[buffers.state(static_cast<std::int32_t>(s))];
    if (elsewhere[s] || own_state_[s] || bytes <= 0) continue;
    offsets.emplace_back(s, block.bytes);
    block.bytes += aligned(bytes);
  }
  if (offsets.empty()) return;
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back(allocate(block));
  for (const auto& [s, offset] : offsets) own_state_[s] = static_cast<char*>(blocks_.back()) + offset;
}

// An error here can only be that of an earlier call, which has been reported.
void DeviceMemory::release() noexcept {
  for (void* block : blocks_)
    if (block) runtime_->free(block);
  blocks_.clear();
}

PinnedMemory::PinnedMemory(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, std::int64_t bytes)
    : runtime_(std::move(runtime)) {
  void* memory = nullptr;
  if (bytes == 0) return;
  if (const char* error = runtime_->allocate_pinned(static_cast<std::size_t>(bytes), &memory))
    throw ExecutionError(fmt::format("{} bytes of pinned memory cannot be had: {}", bytes, error));
  data_ = static_cast<char*>(memory);
}

PinnedMemory::~PinnedMemory() {
  if (data_) runtime_->free_pinned(data_);
}

}  // namespace tapedeck::replay
