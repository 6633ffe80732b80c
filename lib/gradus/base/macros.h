// GRADUS_HD marks functions that run on the host and in device code.
//
// GRADUS_INLINE is inline whatever the compiler thinks of a function's length: a call that is left in a loop
// keeps the loop from becoming vector code. nvcc needs no telling.
//
// Before a loop, GRADUS_UNROLL has nvcc unroll it, so that an array indexed by its counter can lie in
// registers, and GRADUS_NO_UNROLL leaves it as it is, so that a path seldom taken needs few of them.
#pragma once

#ifdef __CUDACC__
#define GRADUS_HD __host__ __device__
#define GRADUS_INLINE inline
#else
#define GRADUS_HD
#define GRADUS_INLINE [[gnu::always_inline]] inline
#endif

#ifdef __CUDA_ARCH__
#define GRADUS_UNROLL _Pragma("unroll")
#define GRADUS_NO_UNROLL _Pragma("unroll 1")
#else
#define GRADUS_UNROLL
#define GRADUS_NO_UNROLL
#endif
