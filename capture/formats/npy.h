// The .npy format of one NumPy array, over plain bytes.
#pragma once

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/engine/eager/tensor.h>

#include <string>

namespace tapedeck {

// Versions 1 to 3, little endian; f4 f8 f2 i4 i8 u1 b1; arrays in Fortran order are turned into C order. Throws FileError
// naming `path` and the reason; never reads past the bytes.
Tensor parse_npy(Bytes file, const std::string& path);

}  // namespace tapedeck
