#include <tapedeck/capture/live/live_status.h>

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/live/live_folder.h>

#include <cstring>
#include <span>

#include <fcntl.h>
#include <unistd.h>

namespace tapedeck::live {

namespace {

struct Image {
  char magic[8] = {'T', 'D', 'L', 'S', 'T', 'A', 'T', '1'};
  Status status;
  std::uint64_t sum = 0;

  std::uint64_t own_sum() const { return checksum({reinterpret_cast<const unsigned char*>(this), offsetof(Image, sum)}); }
};
static_assert(sizeof(Image) == 64);

}  // namespace

bool write_status(int folder, const Status& status) noexcept {
  const Descriptor file(::openat(folder, "status", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  Image image;
  image.status = status;
  image.sum = image.own_sum();
  return file && ::pwrite(file.get(), &image, sizeof(image), 0) == static_cast<ssize_t>(sizeof(image));
}

bool read_status(int folder, Status* status) noexcept {
  const Descriptor file(::openat(folder, "status", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  Image image, expected;
  if (!file || ::pread(file.get(), &image, sizeof(image), 0) != static_cast<ssize_t>(sizeof(image))) return false;
  if (std::memcmp(image.magic, expected.magic, sizeof(image.magic)) != 0 || image.sum != image.own_sum()) return false;
  const Status& s = image.status;
  if (s.ops < 0 || s.steps < 0 || s.dropped < 0 || s.live < 0 || s.peak < 0 || s.time_ns < 0) return false;
  *status = s;
  return true;
}

}  // namespace tapedeck::live
