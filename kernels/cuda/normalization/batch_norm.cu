// The kernels of batch_norm.inl for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/normalization/batch_norm.inl>
