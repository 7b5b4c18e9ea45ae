// Compiles the copies for the device.
#include <tapedeck/kernels/cuda/movement/copies.inl>
