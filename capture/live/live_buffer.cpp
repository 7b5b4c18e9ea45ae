#include <tapedeck/capture/live/live_buffer.h>

#include <tapedeck/engine/eager/allocator.h>

#include <algorithm>
#include <utility>

namespace tapedeck::live {

// ---- the curve ----

void ThinnedCurve::add(std::uint64_t index, std::int64_t time_ns, std::int64_t live, std::uint64_t steps) {
  if (open_.count == 0) open_ = {index, 0, time_ns, live, live, steps};
  ++open_.count;
  open_.lowest = std::min(open_.lowest, live);
  open_.highest = std::max(open_.highest, live);
  open_.steps = steps;
  if (open_.count < stride_) return;
  pieces_.push_back(std::exchange(open_, {}));
  if (pieces_.size() == kMostPoints) halve();
}

void ThinnedCurve::halve() {
  for (std::size_t i = 0; i < pieces_.size() / 2; ++i) {
    const PastRecord &a = pieces_[2 * i], &b = pieces_[2 * i + 1];
    pieces_[i] = {a.index, a.count + b.count, a.time_ns, std::min(a.lowest, b.lowest), std::max(a.highest, b.highest), b.steps};
  }
  pieces_.resize(pieces_.size() / 2);
  stride_ *= 2;
}

std::vector<PastRecord> ThinnedCurve::pieces() const {
  std::vector<PastRecord> all = pieces_;
  if (open_.count > 0) all.push_back(open_);
  return all;
}

// ---- the buffer ----

namespace {

constexpr std::size_t kMostOfAllTexts = 8 << 20;
constexpr std::size_t kRecordRoom = 1024;  // more than a record of a call takes
constexpr std::size_t kMessageRoom = 64 << 10;

std::uint32_t own_thread_number() {
  static std::atomic<std::uint32_t> threads{0};
  static thread_local const std::uint32_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

void LiveBuffer::open(std::size_t most_bytes) {
  const std::lock_guard lock(mutex_);
  most_bytes_ = std::max(most_bytes, 2 * kRecordRoom);
  start_ = std::chrono::steady_clock::now();
  bytes_.clear();
  bytes_.reserve(most_bytes_ + kMessageRoom);
  status_ = {};
  dropped_ = {};
  curve_ = {};
  id_of_key_.clear(), texts_.clear(), id_of_text_.clear(), new_texts_.clear();
  text_bytes_ = 0;
  open_ = true;
}

void LiveBuffer::close() noexcept {
  const std::lock_guard lock(mutex_);
  open_ = false;
}

std::int64_t LiveBuffer::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
}

// A text is known by its address, since looking it up by its characters would cost more than all else of a call. The address
// may have got another text since (a library that was unloaded), so the characters are compared.
std::uint32_t LiveBuffer::text_id(const void* key, std::string_view text) {
  text = text.substr(0, kMostTextBytes);
  if (text.empty()) return 0;
  const auto known = id_of_key_.find(key);
  if (known != id_of_key_.end() && *texts_[known->second - 1] == text) return known->second;
  auto [at, is_new] = id_of_text_.try_emplace(std::string(text), 0);
  if (is_new) {
    if (texts_.size() + 1 >= kMostTexts || text_bytes_ + text.size() > kMostOfAllTexts) {
      id_of_text_.erase(at);
      return 0;
    }
    texts_.push_back(&at->first);
    at->second = static_cast<std::uint32_t>(texts_.size());
    new_texts_.push_back(at->first);
    text_bytes_ += text.size();
  }
  if (id_of_key_.size() < 2 * kMostTexts) id_of_key_[key] = at->second;
  return at->second;
}

void LiveBuffer::note_live(std::int64_t live) {
  status_.live = live;
  status_.peak = std::max(status_.peak, live);
}

void LiveBuffer::append_dropped() {
  if (dropped_.count > 0) append(std::exchange(dropped_, {}), &bytes_);
}

bool LiveBuffer::has_room() {
  if (bytes_.size() + kRecordRoom > most_bytes_) return false;
  append_dropped();
  if (2 * bytes_.size() > most_bytes_) half_full_.store(true, std::memory_order_relaxed);
  return true;
}

void LiveBuffer::ran(const RanOp& call) {
  OpRecord r;
  r.thread = own_thread_number();
  r.live = Allocator::host().stats().bytes_in_use;
  r.line = std::max(call.site.line, 0);
  r.phase = call.phase;
  r.flags = static_cast<std::uint8_t>((call.op.view ? OpRecord::kView : 0) | (call.in_place ? OpRecord::kInPlace : 0));
  r.n_results = static_cast<std::uint8_t>(std::min<std::size_t>(call.results.size(), 255));
  for (const detail::TensorImpl* t : call.results) {
    if (!t) continue;
    r.bytes += t->type().bytes();
    if (r.n_types < kMostTypes) r.types[r.n_types++] = t->type();
  }
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  r.time_ns = now_ns();
  r.index = static_cast<std::uint64_t>(status_.ops++);
  note_live(r.live);
  curve_.add(r.index, r.time_ns, r.live, static_cast<std::uint64_t>(status_.steps));
  if (!has_room()) {
    ++dropped_.count;
    ++status_.dropped;
    dropped_.highest_live = std::max(dropped_.highest_live, r.live);
    return;
  }
  r.op = text_id(call.op.name, call.op.name);
  r.path = text_id(call.path.id(), call.path.view());
  r.file = call.site.file ? text_id(call.site.file, call.site.file) : 0;
  append_op(r, &bytes_);
}

void LiveBuffer::stepped() {
  const std::int64_t live = Allocator::host().stats().bytes_in_use;
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  ++status_.steps;
  note_live(live);
  if (has_room())
    append(StepRecord{static_cast<std::uint64_t>(status_.ops), now_ns(), live, static_cast<std::uint64_t>(status_.steps)},
           &bytes_);
}

void LiveBuffer::replayed(std::string_view name, std::int32_t nodes, std::int64_t peak) {
  const std::int64_t live = Allocator::host().stats().bytes_in_use;
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  note_live(live);
  if (!has_room()) return;
  const std::uint32_t id = text_id(name.data(), name);
  append(ReplayRecord{static_cast<std::uint64_t>(status_.ops), now_ns(), live, peak, id, nodes}, &bytes_);
}

// The few records for which a person waits have some room of their own.
void LiveBuffer::captured(const std::string& file, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (!open_ || bytes_.size() > most_bytes_ + kMessageRoom / 2) return;
  append_dropped();
  append(CapturedRecord{now_ns(), file, message}, &bytes_);
}

void LiveBuffer::ended(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  append_dropped();
  append(EndedRecord{now_ns(), reason}, &bytes_);
}

void LiveBuffer::take(Batch* batch, bool with_past) {
  batch->bytes.clear();
  batch->texts.clear();
  batch->past.clear();
  batch->bytes.reserve(bytes_.capacity());
  const std::lock_guard lock(mutex_);
  append_dropped();
  bytes_.swap(batch->bytes);
  new_texts_.swap(batch->texts);
  half_full_.store(false, std::memory_order_relaxed);
  batch->status = status_;
  batch->status.time_ns = now_ns();
  if (with_past) batch->past = curve_.pieces();
}

}  // namespace tapedeck::live
