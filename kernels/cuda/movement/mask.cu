// Compiles the selections by a mask for the device.
#include <tapedeck/kernels/cuda/movement/mask.inl>
