// Kernels that add to, or read, drawn places of a table, by atomics of the L2.

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

// What a launch is told; the fourth and fifth words are those of `Work` in work.cu.
struct Scatter {
    float *table;
    u64 words; // of the table, a power of two
    float *sink;
    u64 seed;
    Block *blocks;      // one for each block of the grid
    u32 iters, spread;  // spread: places that are drawn from, a power of two
    u32 access, uneven; // uneven: above 0, one block of 32 has so many times the iterations
};

// access 0: each lane adds to a word that it draws. 1: a warp adds to 32 words in a row. 2: a warp reads 32 words and
// adds them to another row. 3: a warp reads a row.
extern "C" __global__ void scatter(const Scatter given) {
    u64 start_ns = 0;
    if (threadIdx.x == 0) start_ns = now_ns();
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, own = given.access == 0 ? t : t >> 5;
    const u32 last = given.spread - 1, all = (u32)given.words - 1;
    u32 turns = given.iters;
    if (given.uneven && (((blockIdx.x * 2654435761u) >> 16) & 255) < 8) turns *= given.uneven;
    u32 x = own * 0x9e3779b9u + (u32)given.seed * 0x85ebca6bu + 1u;
    float a = 0;
#pragma unroll 1
    for (u32 i = 0; i < turns; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        u32 place = given.access == 0 ? (x & last) : (((x & last) << 5) + lane);
        if (given.access == 3) {
            a += __ldcg(given.table + (place & all));
        } else {
            float v = 1.0f;
            if (given.access == 2) v = __ldcg(given.table + (((((x * 0x9e3779b9u) & last) << 5) + lane) & all));
            atomicAdd(given.table + (place & all), v);
        }
    }
    if (a == 12345.678f) *given.sink = a;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 sm;
        asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
        given.blocks[blockIdx.x] = {start_ns, now_ns(), sm};
    }
}
