// The live view of this process: what the hooks of the engine and of captured steps report goes into the buffer, and what
// viewers ask for is done at the next chance. There is one, and it lives as long as the process.
#pragma once

#include <tapedeck/capture/live/live_buffer.h>
#include <tapedeck/capture/live/live_capture.h>
#include <tapedeck/capture/live/live_writer.h>
#include <tapedeck/capture/step/step_observer.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace tapedeck::live {

struct ConnectOptions {
  std::string base, name;
  std::size_t buffer_bytes = LiveBuffer::kMostBytes;
};

class Hub final : public OpObserver, public StepObserver {
 public:
  static Hub& of_process();

  void connect_at_first_op();  // as TAPEDECK_VIEW asks
  // Begins a live view, if there is none. False, after one warning on stderr, if it cannot be begun.
  bool connect(const ConnectOptions& options);
  void disconnect() noexcept;
  bool connected() const;
  std::string folder() const;  // empty: not connected
  void ask(Request request) noexcept;

  void ran(const RanOp& call) noexcept override;
  void stepped() noexcept override;
  void called(const CapturedStep& step, bool planned, bool replayed) noexcept override;

  // Around fork().
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child() noexcept;

 private:
  enum class Wish : std::uint8_t { none, step, begin };

  bool connect_locked(const ConnectOptions& options);
  void connect_if_still_asked();
  void unhook_if_idle() noexcept;
  void serve_begin_and_end();
  void open_capture(bool until_step);
  void close_capture();
  void save(const Captured& captured, const Plan* plan, bool with_values, const char* note = "") noexcept;

  std::atomic<bool> armed_{false};  // connects at the first op
  std::atomic<Wish> wish_{Wish::none};
  std::atomic<bool> end_wished_{false};
  std::atomic<int> open_captures_{0};
  std::atomic<int> files_{0};
  LiveBuffer buffer_;
  mutable std::mutex mutex_;  // of the writer
  std::unique_ptr<LiveWriter> writer_;
  const LiveWriter* parents_writer_ = nullptr;  // in the child of a fork: not to be used any more
  std::string folder_;                          // for the threads of the program; changes while no writer is there
};

}  // namespace tapedeck::live
