// The bytes of a file, mapped copy-on-write. A pipe or another special file is read to its end instead.
#pragma once

#include <tapedeck/capture/formats/checksum.h>

#include <string>
#include <vector>

namespace tapedeck {

class FileBytes {
 public:
  explicit FileBytes(const std::string& path);  // throws FileError with the system's reason
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  Bytes bytes() const { return bytes_; }  // lives as long as this object

 private:
  void* map_ = nullptr;
  std::vector<unsigned char> read_;
  Bytes bytes_;
};

}  // namespace tapedeck
