// Tests which files are read, and that a file that is cut off or endless is an error with its name.
#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <thread>

namespace tapedeck {
namespace {

std::string read_file_range(const ByteSource& file, std::uint64_t at, std::size_t size) {
  std::string text(size, '\0');
  file.read(at, {reinterpret_cast<unsigned char*>(text.data()), size});
  return text;
}

struct InputHook {
  explicit InputHook(FileCallHook hook) { set_file_call_hook(std::move(hook)); }
  ~InputHook() { set_file_call_hook({}); }
};

TEST(InputFile, ReadsRanges) {
  const TemporaryFolder folder;
  write_all(folder.file("f"), "0123456789");
  const InputFile file(folder.file("f"));
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(read_file_range(file, 0, 10), "0123456789");
  EXPECT_EQ(read_file_range(file, 3, 4), "3456");
  EXPECT_EQ(read_file_range(file, 10, 0), "");
  EXPECT_EQ(checksum(file, 2, 5), checksum(MemorySource({reinterpret_cast<const unsigned char*>("23456"), 5}, "m"), 0, 5));
}

TEST(InputFile, RefusesFilesWithoutASize) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const auto reason = [](const std::string& path) { return message_of<FileError>([&] { InputFile file(path); }); };
  EXPECT_NE(reason(folder.file("pipe")).find("/pipe: cannot read: it is a pipe"), std::string::npos);
  EXPECT_EQ(reason("/dev/zero"), "/dev/zero: cannot read: it is a device");
  EXPECT_EQ(reason("/"), "/: cannot read: Is a directory");
  EXPECT_EQ(reason("/no/such"), "/no/such: cannot read: No such file or directory");
}

TEST(InputFile, NoticesTruncationAndChange) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  write_all(path, std::string(100'000, 'x'));
  const InputFile file(path);
  ASSERT_EQ(::truncate(path.c_str(), 50'000), 0);
  EXPECT_EQ(read_file_range(file, 0, 50'000), std::string(50'000, 'x'));
  EXPECT_EQ(message_of<FileError>([&] { read_file_range(file, 40'000, 20'000); }),
            path + ": cannot read: it was cut off to 50000 bytes while it was read");
  EXPECT_EQ(message_of<FileError>([&] { file.check_unchanged(); }), path + ": cannot read: it was changed while it was read");
}

void set_time(const std::string& path, std::time_t seconds, long nanoseconds) {
  const timespec time = {seconds, nanoseconds}, times[2] = {time, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// The size stays the same, and only the time of the last write tells that the file was written.
TEST(InputFile, NoticesAChangeByItsTime) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  write_all(path, "text");
  set_time(path, 1000, 500);
  const InputFile file(path);
  EXPECT_NO_THROW(file.check_unchanged());
  const std::string changed = path + ": cannot read: it was changed while it was read";
  set_time(path, 1001, 500);
  EXPECT_EQ(message_of<FileError>([&] { file.check_unchanged(); }), changed);
  set_time(path, 1000, 600);
  EXPECT_EQ(message_of<FileError>([&] { file.check_unchanged(); }), changed);
  set_time(path, 1000, 500);
  EXPECT_NO_THROW(file.check_unchanged());
}

TEST(InputFile, ReportsThatAFileCannotBeOpened) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  write_all(path, "text");
  const InputHook hook([](FileCall call) { return call == FileCall::open ? EMFILE : 0; });
  const std::string reason = path + ": cannot read: Too many open files";
  EXPECT_EQ(message_of<FileError>([&] { InputFile file(path); }), reason);
  EXPECT_EQ(message_of<FileError>([&] { read_text_file(path); }), reason);
}

TEST(InputFile, ReportsErrorsOfTheSystemAndTriesAgainWhenInterrupted) {
  const TemporaryFolder folder;
  write_all(folder.file("f"), "text");
  const InputFile file(folder.file("f"));
  int calls = 0;
  const InputHook hook([&](FileCall) { return ++calls == 1 ? EINTR : calls == 3 ? EIO : 0; });
  EXPECT_EQ(read_file_range(file, 0, 4), "text");
  EXPECT_EQ(message_of<FileError>([&] { read_file_range(file, 0, 4); }),
            folder.file("f") + ": cannot read: Input/output error");
}

TEST(TextFile, ReadsFilesAndPipes) {
  const TemporaryFolder folder;
  const std::string text(1'000'000, 't');
  write_all(folder.file("f"), text);
  EXPECT_TRUE(read_text_file(folder.file("f")) == text);
  write_all(folder.file("empty"), "");
  EXPECT_EQ(read_text_file(folder.file("empty")), "");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  std::thread writer([&] { write_all(folder.file("pipe"), text); });
  EXPECT_TRUE(read_text_file(folder.file("pipe")) == text);
  writer.join();
}

TEST(TextFile, ReportsErrorsOfTheSystemAndTriesAgainWhenInterrupted) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  write_all(path, "text");
  int reads = 0;
  {
    const InputHook hook([&](FileCall call) { return call == FileCall::read && ++reads == 1 ? EINTR : 0; });
    EXPECT_EQ(read_text_file(path), "text");
    EXPECT_EQ(reads, 3) << "interrupted, the text, its end";
  }
  const InputHook hook([](FileCall call) { return call == FileCall::read ? EIO : 0; });
  EXPECT_EQ(message_of<FileError>([&] { read_text_file(path); }), path + ": cannot read: Input/output error");
  EXPECT_EQ(message_of<FileError>([] { read_text_from(-1, "nothing"); }), "nothing: cannot read: Bad file descriptor");
}

// The size is only a first guess: the text goes to the end of the file.
TEST(TextFile, MayGrowOrShrinkWhileItIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  for (const std::string& now : {std::string(300'000, 'n'), std::string("short"), std::string()}) {
    write_all(path, std::string(1000, 'o'));
    int reads = 0;
    const InputHook hook([&](FileCall call) {
      if (call == FileCall::read && ++reads == 1) write_all(path, now);
      return 0;
    });
    EXPECT_TRUE(read_text_file(path) == now) << now.size();
  }
}

TEST(TextFile, ReadsATerminal) {
  const int keyboard = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (keyboard < 0 || ::grantpt(keyboard) != 0 || ::unlockpt(keyboard) != 0) GTEST_SKIP() << "this system has no terminals";
  const int terminal = ::open(::ptsname(keyboard), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::write(keyboard, "a line\n\x04", 8), 8);  // 4 is the end of the input
  EXPECT_EQ(read_text_from(terminal, "terminal"), "a line\n");
  ::close(terminal);
  ::close(keyboard);
}

TEST(TextFile, IsBounded) {
  const TemporaryFolder folder;
  const auto reason = [](const std::string& path) { return message_of<FileError>([&] { read_text_file(path, 1000); }); };
  EXPECT_EQ(reason("/dev/zero"), "/dev/zero: cannot read: it is a device");
  EXPECT_EQ(reason("/"), "/: cannot read: Is a directory");
  write_all(folder.file("f"), std::string(1001, 't'));
  EXPECT_NE(reason(folder.file("f")).find("it is longer than 1000 bytes, the most for a text"), std::string::npos);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], std::string(2000, 't').data(), 2000), 2000);
  ::close(ends[1]);
  EXPECT_NE(message_of<FileError>([&] { read_text_from(ends[0], "stdin", 1000); }).find("stdin: cannot read: it is longer"),
            std::string::npos);
  ::close(ends[0]);
}

}  // namespace
}  // namespace tapedeck
