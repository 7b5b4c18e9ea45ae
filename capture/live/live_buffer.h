// The bounded buffer between the threads of a program and the thread that writes its live view.
//
//     ran() on any thread  ->  [ bytes of records, at most kMostBytes ]  ->  take() by the writer
//
// A call holds the lock for as long as it copies some 100 bytes, and the writer for as long as it swaps two vectors: no thread
// of the program ever waits for a file. What does not fit is counted and dropped.
#pragma once

#include <tapedeck/capture/live/live_records.h>
#include <tapedeck/capture/live/live_status.h>
#include <tapedeck/engine/eager/op_observer.h>

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapedeck::live {

// The bytes in use after each call of the whole run, thinned to at most kMostPoints pieces of equal numbers of calls.
class ThinnedCurve {
 public:
  void add(std::uint64_t index, std::int64_t time_ns, std::int64_t live, std::uint64_t steps);
  std::vector<PastRecord> pieces() const;  // with the one that is not full yet

 private:
  static constexpr std::size_t kMostPoints = 2048;
  void halve();

  std::vector<PastRecord> pieces_;
  PastRecord open_;
  std::uint64_t stride_ = 1;
};

struct Batch {
  Bytes bytes;                     // whole records
  std::vector<std::string> texts;  // that are new since the batch before
  std::vector<PastRecord> past;    // all calls up to the end of this batch, if it was asked for
  Status status;
};

class LiveBuffer {
 public:
  static constexpr std::size_t kMostBytes = 4 << 20;

  void open(std::size_t most_bytes);  // empties it; from now on records are taken
  void close() noexcept;              // records are ignored from now on; those that are there can still be taken
  void ran(const RanOp& call);
  void stepped();
  void replayed(std::string_view name, std::int32_t nodes, std::int64_t peak);
  void captured(const std::string& file, const std::string& message);
  void ended(const std::string& reason);

  // Takes what there is. REQUIRES: one thread calls it.
  void take(Batch* batch, bool with_past);
  bool is_half_full() const noexcept { return half_full_.load(std::memory_order_relaxed); }
  std::int64_t now_ns() const;

  // For fork(): the lock is held while the process splits in two.
  std::mutex& mutex() { return mutex_; }

 private:
  std::uint32_t text_id(const void* key, std::string_view text);
  void note_live(std::int64_t live);
  bool has_room();  // writes what was dropped, where there is room again
  void append_dropped();

  std::mutex mutex_;
  std::atomic<bool> half_full_{false};
  bool open_ = false;
  std::size_t most_bytes_ = kMostBytes;
  std::chrono::steady_clock::time_point start_;
  Bytes bytes_;
  Status status_;
  DroppedRecord dropped_;
  ThinnedCurve curve_;
  std::unordered_map<const void*, std::uint32_t> id_of_key_;
  std::unordered_map<std::string, std::uint32_t> id_of_text_;
  std::vector<const std::string*> texts_;  // by id, from 1
  std::vector<std::string> new_texts_;
  std::size_t text_bytes_ = 0;
};

}  // namespace tapedeck::live
