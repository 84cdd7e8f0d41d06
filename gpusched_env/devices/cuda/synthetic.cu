// A kernel that stands for a recorded one: as many blocks of as many threads, with as many registers and as much shared
// memory, that compute and load for as long. CHAINS and VALUES are set when it is compiled.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 now_ns() {
    u64 ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

// Report of one launch in memory of the host: when its first block started and its last one ended, 0: not yet; and how
// many blocks have run, where it can be recalled.
struct Report {
    volatile u64 started_ns, ended_ns, ran;
};

// What a launch that can be recalled has in the GPU's memory. A block looks once, before it begins: in the second-level
// cache that takes a fraction of a microsecond, over the bus to the host's memory it would take one or two.
struct Recall {
    u64 left;          // how many blocks are through, above 2^32 those of them that ran; zero before and after the launch
    volatile u32 stop; // seed of a launch that is recalled: nothing has to be cleared for the next one
    u32 unused;
};

// Of one block: when it started and ended, and on which SM.
struct Block {
    u64 started_ns, ended_ns;
    u64 sm;
};

// What a launch is told.
struct Arguments {
    const float4 *buffer;
    u64 lines;      // of 16 bytes, of the buffer; a power of two, at most 2^32
    float *sink;
    u64 seed;       // at most 2^32
    u32 *ended;     // blocks of this launch; zero before and after it
    Report *report; // none: nothing is reported
    u32 turns, loads, extra, unused;
    Block *blocks;  // of this launch; none: they are not recorded
    Recall *recall; // none: it cannot be recalled
};

// A block is through; it has run or (0) not. The last one reports.
__device__ __forceinline__ void leave(const Arguments &given, u64 ran) {
    const u64 own = (ran << 32) + 1, left = atomicAdd(&given.recall->left, own) + own;
    if ((u32)left != gridDim.x) return;
    given.recall->left = 0;
    given.report->ran = left >> 32;
    // Who sees the end sees how many ran.
    __threadfence_system();
    given.report->ended_ns = now_ns();
}

// A thread computes for `turns` turns and loads 16 bytes `loads` times, the first `extra` threads of a block once more.
extern "C" __global__ void synthetic(const Arguments given) {
    const u32 blocks = gridDim.x, turns = given.turns;
    const u32 loads = given.loads + (threadIdx.x < given.extra);
    const float4 *buffer = given.buffer;
    const u32 last = given.lines - 1;
    // All threads look, which takes no more registers, and if one finds it up none runs.
    if (given.recall && __syncthreads_or(given.recall->stop == (u32)given.seed)) {
        if (threadIdx.x == 0) {
            if (given.blocks) given.blocks[blockIdx.x].ended_ns = 0;
            leave(given, 0);
        }
        return;
    }
    // Blocks start in order.
    if (given.report && blockIdx.x == 0 && threadIdx.x == 0) given.report->started_ns = now_ns();

    if (given.blocks && threadIdx.x == 0) {
        u32 sm;
        asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
        given.blocks[blockIdx.x].sm = sm;
        given.blocks[blockIdx.x].started_ns = now_ns();
    }

    // Values that live through the loop: they are the kernel's registers.
    float values[VALUES];
#pragma unroll
    for (int i = 0; i < VALUES; i++) values[i] = threadIdx.x + i;
    // A block streams through lines of its own; those of a launch begin where the seed says, so that no cache has them.
    const u32 threads = blocks * blockDim.x;
    u32 line = (u32)given.seed * 0x9e3779b9u + blockIdx.x * blockDim.x + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    u32 due = 0;
    for (u32 turn = 0; turn < turns; turn++) {
        // Each value waits for the one CHAINS before it: so many multiply-adds of a thread are under way at once.
#pragma unroll
        for (int i = 0; i < VALUES; i++) {
            float before = i >= CHAINS ? values[i - CHAINS] : values[VALUES - CHAINS + i];
            values[i] = fmaf(before, 0.999f, values[i]);
        }
        // Loads are spread over the turns.
        for (due += loads; due >= turns; due -= turns) {
            float4 found = __ldcs(buffer + (line & last));
            sum.x += found.x + found.y + found.z + found.w;
            line += threads;
        }
    }
    float all = sum.x;
#pragma unroll
    for (int i = 0; i < VALUES; i++) all += values[i];
    const bool odd = all == 12345.678f;
    if (odd) *given.sink = all;

    if (given.report == 0) return;
    // A barrier alone lets the first warp read the timer before the others are there; what it answers does not.
    if (__syncthreads_or(odd)) *given.sink = all;
    if (given.blocks && threadIdx.x == 0) given.blocks[blockIdx.x].ended_ns = now_ns();
    if (given.recall && threadIdx.x == 0) leave(given, 1);
    if (given.recall) return;
    // The counter is 0 again after the last block.
    if (threadIdx.x == 0 && atomicInc(given.ended, blocks - 1) == blocks - 1) given.report->ended_ns = now_ns();
}

// What stands before and behind a copy or a graph in its stream.
extern "C" __global__ void mark(volatile u64 *at_ns) {
    __threadfence_system();
    *at_ns = now_ns();
}

// Answers with the GPU's time when the host raises a flag: how far apart both clocks are.
extern "C" __global__ void answer(volatile u32 *flag, volatile u64 *at_ns, u32 times) {
    for (u32 i = 1; i <= times; i++) {
        while (*flag < i) {
        }
        *at_ns = now_ns();
        __threadfence_system();
    }
}
