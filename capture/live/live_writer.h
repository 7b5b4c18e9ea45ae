// The thread that writes the live view of this process to its folder, and sees what viewers ask for.
//
// The tape lies in chunks of some 8 MB, each of which can be read by itself: it begins with the texts so far and with the curve
// of memory so far, thinned. The last kMostChunks chunks stay. So the folder never holds more than 150 MB, apart from captured
// steps.
#pragma once

#include <tapedeck/capture/live/live_buffer.h>
#include <tapedeck/capture/live/live_folder.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <string>
#include <thread>

namespace tapedeck::live {

enum class Request : std::uint8_t { capture_step, begin_capture, end_capture };

class LiveWriter {
 public:
  static constexpr std::size_t kChunkBytes = 8 << 20;
  static constexpr std::size_t kMostChunks = 16;

  // Makes the folder, and begins to write what comes into `buffer`. `asked` is called on the writer's thread for each request.
  // Throws FileError if the folder cannot be made.
  LiveWriter(LiveBuffer& buffer, const std::string& base, const std::string& name, std::function<void(Request)> asked);
  ~LiveWriter();  // writes what is left, and removes the folder if nobody looks at it
  LiveWriter(const LiveWriter&) = delete;

  const std::string& folder() const { return folder_; }
  bool failed() const noexcept { return failed_.load(); }  // the view has ended: disk full, folder gone, ...
  void wake() noexcept { changed_.notify_one(); }
  // In the child of fork(): forgets the files and the thread of the parent. The object must not be used or destroyed after
  // that.
  void abandon_in_child() noexcept;

 private:
  void run();
  void write_batch();
  void begin_chunk();
  void put(const Bytes& bytes);
  void look_for_request();
  void require_folder() const;

  LiveBuffer& buffer_;
  const std::function<void(Request)> asked_;
  std::string folder_;
  Descriptor directory_, alive_, chunk_;
  std::uint64_t chunk_number_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::vector<std::string> texts_;  // all that were written so far, for the next chunk
  Batch batch_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread* thread_ = nullptr;
};

}  // namespace tapedeck::live
