// Keeps the bytes of the blocks of the log, and runs logged calls again.
#include <tapedeck/engine/eager/eviction.h>

#include <tapedeck/engine/eager/eager_device.h>

#include <tapedeck/engine/eager/dispatch_parts.h>
#include <tapedeck/engine/eager/draw_path.h>
#include <tapedeck/engine/eager/session.h>
#include <tapedeck/engine/eviction/eviction_log.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

namespace tapedeck {

using detail::Storage;
using detail::TensorImpl;

namespace {

using Block = EvictionLog::Block;

// Which bytes of its block an operand shows, and as which type.
struct Window {
  Type type;
  std::int64_t offset = 0;
  std::int64_t strides[kMaxRank];
};

struct LoggedCall {
  const Op* op = nullptr;
  std::vector<unsigned char> attrs;
  std::unique_ptr<std::string> path;  // of a draw; `attrs` refers to it
  std::vector<Window> operands;
  std::vector<Type> results;
  Site site;
};

struct BlockBytes {
  Storage* storage = nullptr;  // null if the program holds the block no more
  void* data = nullptr;
  std::int64_t bytes = 0;
};

// The one log of the process. It outlives sessions, because evicted values may be read after the end of their session.
class LoggedMemory final : public EvictionLog::Owner, public MemoryReclaimer {
 public:
  std::recursive_mutex mutex;
  EvictionLog log{*this};
  double choosing_us = 0;

  Block block_of(Storage& s) {
    if (s.block != kNone) return s.block;
    s.block = log.add_block(s.bytes);
    detail::log_has_blocks.store(true, std::memory_order_relaxed);
    remember(s.block, s);
    return s.block;
  }

  void add_call(const Op& op, std::span<TensorImpl* const> in, const void* attrs, std::span<TensorImpl* const> out, Site site) {
    operands_.clear(), results_.resize(out.size()), bytes_of_results_.clear(), types_.clear(), result_types_.clear();
    for (TensorImpl* t : in) operands_.push_back(block_of(*t->storage)), types_.push_back(t->type());
    for (TensorImpl* t : out) bytes_of_results_.push_back(t->storage->bytes), result_types_.push_back(t->type());
    const double cost = std::max(cost_us(op, types_, result_types_, attrs), 1e-3);
    detail::log_has_blocks.store(true, std::memory_order_relaxed);
    const EvictionLog::Call c = log.add_call(operands_, bytes_of_results_, cost, results_);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i]->storage->block = results_[i];
      remember(results_[i], *out[i]->storage);
    }
    if (static_cast<std::size_t>(c) >= calls_.size()) calls_.resize(static_cast<std::size_t>(c) + 1);
    describe(op, in, attrs, out, site, &calls_[c]);
  }

  // The program has let go of the storage. From now on the log owns its bytes, and frees them when no call needs them.
  void let_go(Storage& s) noexcept {
    if (s.block == kNone) return;  // the log was closed since
    bytes_[s.block].storage = nullptr;
    s.data = nullptr;
    log.let_go(s.block);
    if (log.empty()) detail::log_has_blocks.store(false, std::memory_order_relaxed);
  }

  // ---- EvictionLog::Owner ----

  void free(Block b) noexcept override {
    BlockBytes& at = bytes_[b];
    Allocator::host().release(std::exchange(at.data, nullptr), at.bytes);
    if (at.storage) at.storage->data = nullptr;
  }

  void forget(Block b) noexcept override {
    if (Storage* s = bytes_[b].storage) s->block = kNone;
    bytes_[b] = {};
  }
  void forget_call(EvictionLog::Call c) noexcept override {  // the next call with this number uses the memory again
    calls_[c].op = nullptr;
    calls_[c].path.reset();
  }

  void run(EvictionLog::Call c, std::span<const Block> wanted) override {
    const LoggedCall& call = calls_[c];
    const std::span<const Block> operands = log.operands(c), results = log.results(c);
    std::vector<Buffer> made;
    for (const Type& t : call.results) made.emplace_back(Allocator::host(), t.bytes());
    Stand in(operands.size()), out(results.size());
    for (std::size_t i = 0; i < operands.size(); ++i) in.add(call.operands[i], bytes_[operands[i]].data);
    for (std::size_t i = 0; i < results.size(); ++i) out.add(call.results[i], made[i].data());
    run_with_layouts(*call.op, in.impls().data(), static_cast<int>(operands.size()), call.attrs.data(), out.impls().data(),
                     static_cast<int>(results.size()), call.site);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (std::find(wanted.begin(), wanted.end(), results[i]) == wanted.end()) continue;
      BlockBytes& at = bytes_[results[i]];
      at.data = made[i].detach();
      if (at.storage) at.storage->data = at.data;
    }
  }

  // ---- MemoryReclaimer ----

  bool reclaim(std::int64_t bytes) noexcept override {
    const std::lock_guard lock(mutex);
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t freed = log.evict_bytes(bytes);
    choosing_us += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    return freed > 0;
  }

  std::string shortage() override {
    const std::lock_guard lock(mutex);
    std::int64_t computed = 0, outside = 0;
    Block largest = kNone;
    for (Block b = 0; b < static_cast<Block>(bytes_.size()); ++b) {
      if (!bytes_[b].data) continue;
      (log.maker(b) == kNone ? outside : computed) += bytes_[b].bytes;
      if (largest == kNone || bytes_[b].bytes > bytes_[largest].bytes) largest = b;
    }
    if (largest == kNone) return "; no result of a logged op is in memory";
    return fmt::format(
        "; {} bytes are pinned or are read now, {} bytes are inputs, parameters and other values that no logged op "
        "made, and the largest block has {} bytes",
        computed, outside, bytes_[largest].bytes);
  }

 private:
  // The operands or results of a call that runs again, as tensors. The tensors do not own their bytes.
  class Stand {
   public:
    explicit Stand(std::size_t n) : storages_(std::make_unique<Storage[]>(n)) { impls_.reserve(n); }
    ~Stand() {
      for (TensorImpl* t : impls_) detail::release(t);
    }
    Stand(const Stand&) = delete;
    void add(const Type& type, void* data) { add({type, 0, {}}, data, true); }
    void add(const Window& window, void* data) { add(window, data, false); }
    std::span<TensorImpl* const> impls() const { return impls_; }

   private:
    void add(const Window& window, void* data, bool dense) {
      Storage& s = storages_[impls_.size()];
      s.refs.store(2);  // so that the tensor, which gives up one, never frees it
      s.data = data;
      s.bytes = window.type.bytes();
      TensorImpl* t = detail::new_impl(window.type, &s);
      t->offset = window.offset;
      if (!dense) std::copy_n(window.strides, window.type.shape.rank, t->strides);
      impls_.push_back(t);
    }
    std::unique_ptr<Storage[]> storages_;
    std::vector<TensorImpl*> impls_;
  };

  void remember(Block b, Storage& s) {
    if (static_cast<std::size_t>(b) >= bytes_.size()) bytes_.resize(static_cast<std::size_t>(b) + 1);
    bytes_[b] = {&s, s.data, s.bytes};
  }

  static void describe(const Op& op, std::span<TensorImpl* const> in, const void* attrs, std::span<TensorImpl* const> out,
                       Site site, LoggedCall* call) {
    call->op = &op;
    call->site = site;
    call->attrs.clear();
    if (op.attrs) {
      const auto* bytes = static_cast<const unsigned char*>(attrs);
      call->attrs.assign(bytes, bytes + op.attrs->size);
      call->path = own_path(op, call->attrs);
    }
    call->operands.resize(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      Window& window = call->operands[i];
      window.type = in[i]->type();
      window.offset = in[i]->offset;
      std::copy_n(in[i]->strides, in[i]->shape.rank, window.strides);
    }
    call->results.clear();
    for (const TensorImpl* t : out) call->results.push_back(t->type());
  }

  std::vector<BlockBytes> bytes_;          // by block
  std::vector<LoggedCall> calls_;          // by call
  std::vector<Block> operands_, results_;  // of the call that add_call() adds, as the next three
  std::vector<std::int64_t> bytes_of_results_;
  std::vector<Type> types_, result_types_;
};

LoggedMemory& logged_memory() {
  static LoggedMemory* memory = new LoggedMemory;  // never destroyed, because tensors may live until the end of the process
  return *memory;
}

constinit std::atomic<bool> session_is_open{false};

struct SessionStart {
  EvictionLog::Counts counts;
  std::int64_t budget = 0;
  double choosing_us = 0;
};
SessionStart& session_start() {
  static SessionStart start;
  return start;
}

Storage& storage_of(const char* what, const Tensor& x, Site site) {
  if (!x.defined()) throw TypeError(error_text(what, "the tensor is undefined", site));
  if (!x.impl()->storage) throw TypeError(error_text(what, fmt::format("{} is abstract", to_string(x.type())), site));
  return *x.impl()->storage;
}

// Runs `fn` under the lock of the log. An error of the memory limit gets the name of the function and the site.
template <class Fn>
void locked(const char* what, Site site, Fn fn) {
  const std::lock_guard lock(logged_memory().mutex);
  try {
    fn(logged_memory());
  } catch (const MemoryLimitError& error) {
    if (!error.op().empty()) throw;
    throw MemoryLimitError(error_text(what, error.message(), site));
  }
}

}  // namespace

namespace detail {

bool calls_are_logged() noexcept { return session_is_open.load(std::memory_order_relaxed); }

constinit std::atomic<bool> log_has_blocks{false};

void ResidentTensors::lock(std::span<TensorImpl* const> tensors, const char* reader, Site site) {
  const auto has_block = [](const TensorImpl* t) { return t && t->storage && t->storage->block != kNone; };
  if (std::none_of(tensors.begin(), tensors.end(), has_block)) return;
  LoggedMemory& memory = logged_memory();
  const std::lock_guard guard(memory.mutex);
  locked_ = std::make_unique<std::vector<Block>>();
  locked_->reserve(tensors.size());
  try {
    for (const TensorImpl* t : tensors) {
      if (!has_block(t)) continue;
      memory.log.read(t->storage->block);
      memory.log.lock(t->storage->block);
      locked_->push_back(t->storage->block);
    }
  } catch (const MemoryLimitError& error) {
    unlock();
    if (!reader || !error.op().empty()) throw;
    throw MemoryLimitError(error_text(reader, error.message(), site));
  } catch (...) {
    unlock();
    throw;
  }
}

void ResidentTensors::unlock() noexcept {
  LoggedMemory& memory = logged_memory();
  const std::lock_guard guard(memory.mutex);
  for (Block b : *locked_) memory.log.unlock(b);
}

void log_call(const Op& op, std::span<TensorImpl* const> in, const void* attrs, std::span<TensorImpl* const> out, Site site) {
  if (op.is(kEffect | kHostCall | kPlanOnly) || op.run) return;
  const auto may_change = [](const TensorImpl* t) { return !t->storage || t->storage->handed_out || t->storage->replays > 0; };
  if (std::any_of(in.begin(), in.end(), may_change)) return;
  LoggedMemory& memory = logged_memory();
  const std::lock_guard lock(memory.mutex);
  memory.add_call(op, in, attrs, out, site);
}

void let_go(Storage* s) noexcept {
  const std::lock_guard lock(logged_memory().mutex);
  logged_memory().let_go(*s);
}

void before_write_logged(Storage& s, const char* writer, Site site) {
  locked(writer, site, [&](LoggedMemory& memory) {
    if (s.block != kNone) memory.log.before_write(s.block);
  });
}

void* bytes_to_write(TensorImpl& t, Site site) {
  before_write(*t.storage, "random state", site);
  ++t.storage->version;
  t.storage->written_at = site;
  return t.resident_data();
}

void* exposed_bytes(Storage& s, const char* reader, Site site) {
  if (s.device)
    throw DeviceError(error_text(
        reader, fmt::format("the bytes of this tensor are on {}; copy it with to_device(x, \"cpu\")", s.device->name()), site));
  locked(reader, site, [&](LoggedMemory& memory) {
    if (s.block == kNone) return;
    memory.log.read(s.block);
    memory.log.pin(s.block);
  });
  return s.data;
}

void* exposed_bytes(Storage& s) { return exposed_bytes(s, "data", {}); }

}  // namespace detail

MemoryBudget::MemoryBudget(std::int64_t bytes, Site site) {
  if (bytes < 1)
    throw UsageError(error_text("session", fmt::format("a memory budget of {} bytes; it is at least 1", bytes), site));
  if (session_is_open.exchange(true)) throw UsageError(error_text("session", "another session is open", site));
  LoggedMemory& memory = logged_memory();
  Allocator& host = Allocator::host();
  if (host.system_bytes() > bytes) host.trim();
  if (host.system_bytes() > bytes) {
    session_is_open = false;
    throw MemoryLimitError(error_text(
        "session", fmt::format("tensors hold {} bytes, more than the memory budget of {}", host.system_bytes(), bytes), site));
  }
  host.set_limit(bytes, &memory);
  const std::lock_guard lock(memory.mutex);
  session_start() = {memory.log.counts(), bytes, memory.choosing_us};
}

MemoryBudget::~MemoryBudget() {
  Allocator::host().set_limit(0, nullptr);
  const std::lock_guard lock(logged_memory().mutex);
  session_is_open = false;
  if (logged_memory().log.close()) detail::log_has_blocks = false;
}

SessionStats MemoryBudget::stats() const {
  const std::lock_guard lock(logged_memory().mutex);
  const EvictionLog::Counts now = logged_memory().log.counts(), &before = session_start().counts;
  return {session_start().budget,
          Allocator::host().peak_system_bytes(),
          now.calls - before.calls,
          now.evictions - before.evictions,
          now.recomputed - before.recomputed,
          now.cost - before.cost,
          now.recomputed_cost - before.recomputed_cost,
          logged_memory().choosing_us - session_start().choosing_us};
}

const Tensor& pin(const Tensor& x, Site site) {
  Storage& s = storage_of("pin", x, site);
  locked("pin", site, [&](LoggedMemory& memory) {
    if (s.block == kNone) return;  // the log does not know it, so it is never evicted
    memory.log.read(s.block);
    memory.log.pin(s.block);
  });
  return x;
}

const Tensor& unpin(const Tensor& x, Site site) {
  Storage& s = storage_of("unpin", x, site);
  const std::lock_guard lock(logged_memory().mutex);
  if (s.block != kNone) logged_memory().log.unpin(s.block);
  return x;
}

bool drop(const Tensor& x, Site site) {
  Storage& s = storage_of("drop", x, site);
  const std::lock_guard lock(logged_memory().mutex);
  return s.block != kNone && logged_memory().log.evict(s.block);
}

bool is_resident(const Tensor& x, Site site) {
  Storage& s = storage_of("is_resident", x, site);
  const std::lock_guard lock(logged_memory().mutex);
  return s.block == kNone || logged_memory().log.is_resident(s.block);
}

}  // namespace tapedeck
