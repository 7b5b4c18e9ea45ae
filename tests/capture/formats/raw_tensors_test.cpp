// Tests raw files and streams of tensors against bytes written by hand.
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tapedeck {
namespace {

const Type kPair{DType::i32, {2}};
const std::string kOneTwo("\1\0\0\0\2\0\0\0", 8), kThreeFour("\3\0\0\0\4\0\0\0", 8);

TEST(RawTensors, AFileIsTheElements) {
  const TemporaryFolder folder;
  write_all(folder.file("x.raw"), kOneTwo);
  EXPECT_EQ(load_raw(folder.file("x.raw"), kPair).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2}));
  EXPECT_NE(message_of<FileError>([&] {
              load_raw(folder.file("x.raw"), {DType::i32, {3}});
            }).find("x.raw: 8 bytes, but i32[3] takes 12"),
            std::string::npos);
  EXPECT_THROW(load_raw(folder.file("x.raw"), {DType::boolean, {8}}), FileError);
  EXPECT_THROW(load_raw(folder.file("none.raw"), kPair), FileError);
}

// Writes the bytes into a pipe and closes it.
class Pipe {
 public:
  explicit Pipe(const std::string& bytes) {
    if (::pipe(ends_) != 0 || ::write(ends_[1], bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
    ::close(ends_[1]);
  }
  ~Pipe() { ::close(ends_[0]); }
  int fd() const { return ends_[0]; }

 private:
  int ends_[2];
};

TEST(RawTensors, AStreamIsReadOneByOne) {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string npy = "\x93NUMPY" + std::string{'\1', '\0', static_cast<char>(header.size()), '\0'} + header + kThreeFour;
  const Pipe pipe(kOneTwo + npy + kOneTwo);
  TensorStream stream(pipe.fd(), "stdin");
  for (const int first : {1, 3, 1}) {
    const std::optional<Tensor> t = stream.next(kPair);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->to_vector<std::int32_t>(), (std::vector<std::int32_t>{first, first + 1}));
  }
  EXPECT_FALSE(stream.next(kPair));
  EXPECT_FALSE(stream.next(kPair));
}

TEST(RawTensors, SmallTensorsAndTheEndInTheMiddle) {
  const Pipe pipe("\1\2\3");
  TensorStream stream(pipe.fd(), "stdin");
  EXPECT_EQ(stream.next({DType::u8, {}})->to_vector<unsigned char>(), (std::vector<unsigned char>{1}));
  EXPECT_EQ(message_of<FileError>([&] { stream.next({DType::u8, {3}}); }), "stdin: it ended after 2 of the 3 bytes of u8[3]");
  const Pipe half("\x93NUMPY\1");
  TensorStream cut(half.fd(), "stdin");
  EXPECT_EQ(message_of<FileError>([&] { cut.next(kPair); }), "stdin: it ended in the middle of an .npy array");
}

std::atomic<bool> asked_to_stop{false};

// The handler asks for a stop while the stream waits for bytes that never come.
TEST(RawTensors, AWaitIsInterruptedByASignal) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) { asked_to_stop = true; };
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const HeedFlag heed(asked_to_stop);
  std::atomic<bool> done{false};
  const pthread_t reader = ::pthread_self();
  std::thread sender([&] {
    for (int i = 0; i < 100 && !done; ++i) {  // the first one may come before the wait
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (i < 2) ::pthread_kill(reader, SIGUSR1);
    }
    ::close(ends[1]);  // ends a wait that heeds nothing
  });
  TensorStream stream(ends[0], "stdin");
  EXPECT_THROW(stream.next(kPair), Cancelled);
  done = true;
  sender.join();
  ::close(ends[0]);
  ::sigaction(SIGUSR1, &before, nullptr);
  asked_to_stop = false;
}

}  // namespace
}  // namespace tapedeck
