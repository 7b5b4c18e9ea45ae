// The .npy format of one NumPy array.
#pragma once

#include <tapedeck/capture/formats/byte_source.h>
#include <tapedeck/engine/eager/tensor.h>

namespace tapedeck {

// Versions 1 to 3, little endian; f4 f8 f2 i4 i8 u1 b1; arrays in Fortran order are turned into C order. Throws FileError
// naming the file and the reason.
Tensor read_npy(const ByteSource& file);

}  // namespace tapedeck
