// Two dependent kernels whose thread blocks are tiles and synchronise by semaphores (Jangda et al., cuSync, CGO 2024):
// blocks that last as long as they are told, and tiles of real matrix products.

struct Tiles {
    // Posts so far, rounds in which each of the producer's tiles has ended, rounds in which the producer has started,
    // steps that began before the tile that they read had ended, waits that were given up.
    int *semaphores, *ended, *started, *early, *gave_up;
    // (tiles,) semaphore that a tile posts; (blocks, waits) semaphore, and step before which a block waits for it.
    const int *post, *awaited, *before;
    // Whether tiles are posted; waits a block; posts that a wait needs a round; steps a block; columns of the producer.
    int posting, waits, value, steps, columns;
    // Whether the kernel is the consumer; which round this is, from 1; after how long a wait is given up.
    int consuming, round, limit_us;
};

__device__ long long now_ns() {
    long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time)::"memory");
    return time;
}

__device__ int acquired(const int* word) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

__device__ void wait_for(const int* word, int value, int limit_us, int* gave_up) {
    if (acquired(word) >= value) return;
    // Where one was given up, others would be as well.
    if (acquired(gave_up) > 0) limit_us /= 100;
    long long since = now_ns();
    while (acquired(word) < value) {
        if (now_ns() - since > 1000LL * limit_us) {
            atomicAdd(gave_up, 1);
            return;
        }
    }
}

__device__ int own_block() { return blockIdx.y * gridDim.x + blockIdx.x; }

__device__ void begin(const Tiles& t) {
    if (!t.consuming && own_block() == 0 && threadIdx.x == 0) atomicExch(t.started, t.round);
}

// Waits for what the block needs before a step; returns how many waits it has behind it.
__device__ int wait_before(const Tiles& t, int step, int done) {
    if (!t.consuming) return done;
    int first = own_block() * t.waits, next = done;
    while (next < t.waits && t.before[first + next] == step) ++next;
    if (threadIdx.x == 0) {
        for (int i = done; i < next; ++i)
            wait_for(t.semaphores + t.awaited[first + i], t.round * t.value, t.limit_us, t.gave_up);
        int tile = blockIdx.y * t.columns + step;
        if (step < t.columns && acquired(t.ended + tile) < t.round) atomicAdd(t.early, 1);
    }
    __syncthreads();
    return next;
}

// Marks a tile of the producer as ended, which is the truth, and posts it, which is the policy's.
__device__ void end(const Tiles& t) {
    if (t.consuming) return;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(t.ended + own_block(), t.round);
        if (t.posting) {
            __threadfence();
            atomicAdd(t.semaphores + t.post[own_block()], 1);
        }
    }
}

// A step takes so many cycles: the timer in nanoseconds is too coarse to tell a wait from none.
extern "C" __global__ void spin(Tiles t, int step_cycles) {
    begin(t);
    for (int step = 0, done = 0; step < t.steps; ++step) {
        done = wait_before(t, step, done);
        if (threadIdx.x == 0) {
            long long since = clock64();
            while (clock64() - since < step_cycles) {
            }
        }
        __syncthreads();
    }
    end(t);
}

// c = a b, row by row: a block has 256 threads and a tile of 128 x 128 elements, a thread 8 x 8 of them. A step of the
// consumer reads a tile of 128 columns of a.
extern "C" __global__ void __launch_bounds__(256) product(Tiles t, const float* a, const float* b, float* c, int inner) {
    constexpr int SIDE = 128, DEPTH = 8;
    __shared__ float left[DEPTH][SIDE + 4], right[DEPTH][SIDE];
    int columns = gridDim.x * SIDE, row = threadIdx.x / 16 * 8, column = threadIdx.x % 16 * 8;
    const float* own_a = a + (size_t)(blockIdx.y * SIDE + threadIdx.x / 2) * inner + threadIdx.x % 2 * 4;
    const float* own_b = b + (size_t)(threadIdx.x / 32) * columns + blockIdx.x * SIDE + threadIdx.x % 32 * 4;
    float sum[8][8] = {};
    begin(t);
    for (int k = 0, done = 0; k < inner; k += DEPTH) {
        if (k % SIDE == 0) done = wait_before(t, k / SIDE, done);
        float4 from_a = __ldcg((const float4*)(own_a + k));
        float4 from_b = *(const float4*)(own_b + (size_t)k * columns);
        __syncthreads();
        int in = threadIdx.x % 2 * 4;
        left[in][threadIdx.x / 2] = from_a.x;
        left[in + 1][threadIdx.x / 2] = from_a.y;
        left[in + 2][threadIdx.x / 2] = from_a.z;
        left[in + 3][threadIdx.x / 2] = from_a.w;
        *(float4*)&right[threadIdx.x / 32][threadIdx.x % 32 * 4] = from_b;
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DEPTH; ++d)
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += left[d][row + i] * right[d][column + j];
    }
    float* own_c = c + (size_t)(blockIdx.y * SIDE + row) * columns + blockIdx.x * SIDE + column;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) own_c[(size_t)i * columns + j] = sum[i][j];
    end(t);
}

// The kernel that holds the consumer's stream up until the producer's first block has started.
extern "C" __global__ void wait_kernel(const int* started, int round, int limit_us, int* gave_up) {
    wait_for(started, round, limit_us, gave_up);
}

// Keeps an SM a block, until it is released.
extern "C" __global__ void occupy(const int* released, int round, int limit_us) {
    long long since = now_ns();
    while (acquired(released) < round && now_ns() - since < 1000LL * limit_us) {
    }
}
