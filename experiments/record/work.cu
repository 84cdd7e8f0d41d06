// The synthetic kernels of recordings, and the timer that releases streams.

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
// Costs of an instruction that were fitted to earlier recordings contain the loop's own instructions: on an H100 a step
// of the arithmetic loop cost 5.1 cycles and 1.5 issue slots a multiply-add there, and 7.4 and 1.9 without unrolling. A
// load is waited for before the next one.
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
#pragma unroll 2
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

// What the timer is told. It is a parameter as a whole, so that nothing has to be fetched while flags are raised.
struct Release {
    volatile u64 *go; // in memory of the host, which writes `turn` there
    u64 turn;
    volatile u64 *released_ns; // in memory of the host: when the timer saw it
    volatile u32 *flags;
    u64 count;
    u64 delays_ns[16], order[16]; // flag order[i] becomes `turn` at delays_ns[i]; `count` of them, ascending
};

// Raises the flag of each stream at its delay after the host's release.
extern "C" __global__ void timer(const __grid_constant__ Release given) {
    const u32 turn = given.turn;
    while (*given.go < given.turn) {
    }
    const u64 zero = now_ns();
    for (u64 i = 0; i < given.count; i++) {
        const u64 due = zero + given.delays_ns[i];
        while (now_ns() < due) {
        }
        given.flags[given.order[i]] = turn;
        __threadfence_system();
    }
    *given.released_ns = zero;
}

// What a launch of `scatter` is told: seed and blocks are in the places that they have in `Work`.
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
