// Compiles the sort of pairs for the device.
#include <tapedeck/kernels/cuda/movement/pairs.inl>
