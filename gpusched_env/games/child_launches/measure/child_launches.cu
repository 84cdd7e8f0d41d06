// What a launch from the device costs: times of the calls, and of the children that they start.

__device__ long long now_ns() {
    long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time)::"memory");
    return time;
}

__device__ void spin(long long since, long long spin_ns) {
    while (now_ns() - since < spin_ns) {
    }
}

extern "C" __global__ void child(long long* start, long long* end, int index, long long spin_ns) {
    long long since = now_ns();
    if (blockIdx.x == 0 && threadIdx.x == 0) start[index] = since;
    spin(since, spin_ns);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) end[index] = now_ns();
}

// The first `lanes` lanes of every warp launch a child together, `rounds` times.
// begin: (warps,) ns; call_ns, call_cycles: (warps, rounds); start, end, error: (warps, rounds, lanes).
extern "C" __global__ void launch(long long* begin, long long* call_ns, long long* call_cycles, long long* start,
                                  long long* end, int* error, int lanes, int rounds, int child_blocks,
                                  int child_threads, long long spin_ns) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (lane == 0) begin[warp] = now_ns();
    for (int round = 0; round < rounds; ++round) {
        __syncwarp();
        long long since_ns = now_ns(), since_cycles = clock64();
        if (lane < lanes) {
            int index = (warp * rounds + round) * lanes + lane;
            child<<<child_blocks, child_threads, 0, cudaStreamFireAndForget>>>(start, end, index, spin_ns);
            error[index] = cudaGetLastError();
        }
        __syncwarp();
        if (lane == 0) {
            call_cycles[warp * rounds + round] = clock64() - since_cycles;
            call_ns[warp * rounds + round] = now_ns() - since_ns;
        }
    }
}
