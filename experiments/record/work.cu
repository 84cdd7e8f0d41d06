// The synthetic kernel of recordings, and the timer that releases streams.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 now_ns() {
    u64 ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

// What a block reports: when it ran, ns of %globaltimer, and where.
struct Block {
    u64 start_ns, end_ns, sm;
};

// What a launch is told.
struct Work {
    const float4 *buffer;
    u64 lines; // of 16 bytes, of the buffer; a power of two, at most 2^32
    float *sink;
    u64 seed;      // at most 2^32
    Block *blocks; // one for each block of the grid
    u32 iters, fma;
    u32 load, unused;
};

// A thread runs `iters` times `fma` multiply-adds on each of four chains, then `load` streaming loads of 16 bytes.
//
// Neither inner loop is unrolled: costs of an instruction that were fitted to earlier recordings contain the loop's own
// instructions, and a load is waited for before the next one.
extern "C" __global__ void work(const Work given) {
    u64 start_ns = 0;
    if (threadIdx.x == 0) start_ns = now_ns();
    const u32 last = given.lines - 1, threads = gridDim.x * blockDim.x;
    const float4 *buffer = given.buffer;
    // Lines of a launch begin where the seed says, so that no cache has them.
    u32 line = (u32)given.seed * 0x9e3779b9u + blockIdx.x * blockDim.x + threadIdx.x;
    float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
    for (u32 i = 0; i < given.iters; i++) {
#pragma unroll 1
        for (u32 f = 0; f < given.fma; f++) {
            a = fmaf(a, 0.999f, 1.0f);
            b = fmaf(b, 0.999f, 1.0f);
            c = fmaf(c, 0.999f, 1.0f);
            d = fmaf(d, 0.999f, 1.0f);
        }
#pragma unroll 1
        for (u32 n = 0; n < given.load; n++) {
            float4 found = __ldcs(buffer + (line & last));
            a += found.x + found.y + found.z + found.w;
            line += threads;
        }
    }
    if (a + b + c + d == 12345.678f) *given.sink = a;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 sm;
        asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
        given.blocks[blockIdx.x] = {start_ns, now_ns(), sm};
    }
}

// Waits for the host's release, tells when that was, and raises the flag of each stream at its delay.
//
// go: the host writes `turn` there. delays_ns: `count` of them, ascending; flags[order[i]] becomes `turn` at the i-th.
extern "C" __global__ void timer(
    volatile u64 *go, u64 turn, volatile u64 *released_ns, const u64 *delays_ns, const u64 *order, volatile u32 *flags,
    u64 count) {
    while (*go < turn) {
    }
    const u64 zero = now_ns();
    for (u64 i = 0; i < count; i++) {
        const u64 due = zero + delays_ns[i];
        const u64 which = order[i];
        while (now_ns() < due) {
        }
        flags[which] = (u32)turn;
        __threadfence_system();
    }
    *released_ns = zero;
}
