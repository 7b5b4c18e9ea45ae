// softmax, log_softmax and their gradients for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/normalization/softmax.inl>
