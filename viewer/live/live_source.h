// The folder of a running program, read in the background. The thread of the windows never waits for a file: it takes the lock
// for a moment, and the reader holds it for a few thousand records at most.
#pragma once

#include <tapedeck/capture/live/live_folder.h>
#include <tapedeck/viewer/live/live_tape.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tapedeck::viewer {

enum class LiveState : std::uint8_t { running, finished, died };
const char* live_state_name(LiveState state);  // "running", "has ended", "died"

// Reads what is there, and what comes. Not thread safe.
class LiveReader {
 public:
  // Throws FileError if it is no folder of a live view.
  explicit LiveReader(const std::string& folder);
  ~LiveReader();
  LiveReader(const LiveReader&) = delete;

  const live::ProgramInfo& info() const { return info_; }
  const std::string& folder() const { return path_; }
  const std::string& damage() const { return damage_; }  // why nothing more is read; empty: nothing is wrong
  // Reads one portion into the tape, which `lock` guards. False if there was nothing new.
  bool read(LiveTape* tape, std::mutex& lock);
  void give_up(const std::string& why) { damage_ = why; }
  bool is_alive() const { return live::is_alive(directory_.get()); }
  // Asks the program for something: "capture", "begin" or "end". Throws FileError.
  void ask(const std::string& what) const;

 private:
  bool open_next_chunk();
  std::uint64_t lowest_chunk_from(std::uint64_t number) const;
  bool open_chunk(std::uint64_t number);

  std::string path_, damage_;
  live::Descriptor directory_, watched_, chunk_;
  live::ProgramInfo info_;
  std::uint64_t number_ = 0;
  std::int64_t offset_ = 0;
  std::vector<unsigned char> bytes_;  // that are not whole records yet
  live::RecordReader reader_;
};

class LiveSource {
 public:
  explicit LiveSource(const std::string& folder);  // throws FileError
  ~LiveSource();
  LiveSource(const LiveSource&) = delete;

  const live::ProgramInfo& info() const { return reader_.info(); }
  const std::string& folder() const { return reader_.folder(); }
  void ask(const std::string& what) const { reader_.ask(what); }

  // What there is of the tape. The lock is held for as long as the object lives.
  class View {
   public:
    explicit View(const LiveSource& source) : lock_(source.mutex_, std::defer_lock), source_(source) {
      ++source.waiting_;
      lock_.lock();
      --source.waiting_;
    }
    const LiveTape& tape() const { return source_.tape_; }
    LiveState state() const { return source_.state_; }
    const std::string& damage() const { return source_.damage_; }
    std::uint64_t changes() const { return source_.changes_; }

   private:
    std::unique_lock<std::mutex> lock_;
    const LiveSource& source_;
  };
  void wait_until_read() const;  // until all that is there now has been read; for unattended pictures

 private:
  void run();
  bool read_portion();
  void let_views_pass() const;

  LiveReader reader_;
  mutable std::mutex mutex_;
  mutable std::atomic<int> waiting_{0};  // threads that wait for the mutex to look at the tape
  LiveTape tape_;
  LiveState state_ = LiveState::running;
  std::string damage_;
  std::uint64_t changes_ = 0;
  std::uint64_t caught_up_ = 0;  // how often nothing new was found
  mutable std::mutex stop_mutex_;
  mutable std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace tapedeck::viewer
