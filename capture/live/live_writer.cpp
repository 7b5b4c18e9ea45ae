#include <tapedeck/capture/live/live_writer.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tapedeck::live {

namespace {

constexpr std::chrono::milliseconds kPause{25};

std::string chunk_name(std::uint64_t number) { return fmt::format("chunk-{:08}", number); }

// The signals of the program are for its own threads. Blocked, the one of a file that is too large becomes an error of write().
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

LiveWriter::LiveWriter(LiveBuffer& buffer, const std::string& base, const std::string& name, std::function<void(Request)> asked)
    : buffer_(buffer), asked_(std::move(asked)), folder_(make_program_folder(base, name)) {
  directory_ = open_folder(folder_);
  alive_ = lock_alive(directory_.get());
  begin_chunk();
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  write_info(directory_.get(), {clean_name(name), ::getpid(), now});
  const NoSignals inherited_by_the_thread;
  thread_ = new std::thread([this] { run(); });
}

LiveWriter::~LiveWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_->join();
  delete thread_;
  alive_ = {};
  remove_if_unused(folder_);
}

void LiveWriter::abandon_in_child() noexcept {
  for (Descriptor* file : {&directory_, &alive_, &chunk_})
    if (const int fd = file->release(); fd >= 0) ::close(fd);
}

void LiveWriter::run() {
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    changed_.wait_for(lock, kPause, [this] { return stop_ || buffer_.is_half_full(); });
    last = stop_;
    lock.unlock();
    try {
      write_batch();
      look_for_request();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "warning: the live view ends: %s\n", e.what());
      buffer_.close();
      failed_ = true;
      last = true;
    }
    lock.lock();
  }
}

void LiveWriter::write_batch() {
  // The chunk may be full after this batch, and the next one begins with all that was before it.
  buffer_.take(&batch_, chunk_bytes_ + LiveBuffer::kMostBytes >= kChunkBytes);
  require_folder();
  Bytes texts;
  for (std::string& text : batch_.texts) {
    texts_.push_back(std::move(text));
    append(TextRecord{static_cast<std::uint32_t>(texts_.size()), texts_.back()}, &texts);
  }
  put(texts);
  put(batch_.bytes);
  write_status(directory_.get(), batch_.status);
  if (chunk_bytes_ >= kChunkBytes) begin_chunk();
}

void LiveWriter::begin_chunk() {
  const std::string name = chunk_name(++chunk_number_);
  chunk_ = Descriptor(::openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!chunk_) throw FileError(fmt::format("{}/{}: {}", folder_, name, std::strerror(errno)));
  chunk_bytes_ = 0;
  Bytes bytes;
  append_chunk_header(chunk_number_, &bytes);
  for (std::size_t i = 0; i < texts_.size(); ++i) append(TextRecord{static_cast<std::uint32_t>(i + 1), texts_[i]}, &bytes);
  for (const PastRecord& piece : batch_.past) append(piece, &bytes);
  put(bytes);
  chunk_bytes_ = 0;  // what a chunk begins with does not count, so that it never fills a chunk by itself
  if (chunk_number_ > kMostChunks) ::unlinkat(directory_.get(), chunk_name(chunk_number_ - kMostChunks).c_str(), 0);
}

void LiveWriter::put(const Bytes& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(chunk_.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw FileError(fmt::format("{}: {}", folder_, n < 0 ? std::strerror(errno) : "cannot be written"));
    done += static_cast<std::size_t>(n);
  }
  chunk_bytes_ += bytes.size();
}

// A folder that was removed can still be written, and nobody would ever see it or get its bytes back.
void LiveWriter::require_folder() const {
  struct stat found {};
  if (::fstat(directory_.get(), &found) != 0 || found.st_nlink == 0)
    throw FileError(fmt::format("{}: the folder was removed", folder_));
}

void LiveWriter::look_for_request() {
  const Descriptor file(::openat(directory_.get(), "request", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return;
  char bytes[64];
  const ssize_t n = ::read(file.get(), bytes, sizeof(bytes));
  if (n == 0) return;  // a shell has made it, and writes it in a moment
  ::unlinkat(directory_.get(), "request", 0);
  const std::string_view text(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
  if (text == "capture\n") asked_(Request::capture_step);
  if (text == "begin\n") asked_(Request::begin_capture);
  if (text == "end\n") asked_(Request::end_capture);
}

}  // namespace tapedeck::live
