// Applications whose threads loop over items, or hand the loop to a child kernel of one thread an item.
//
// An application is a struct with what all threads share. `thread(index)` reads what thread `index` of the grid needs,
// `item(own, i)` does its item i. `work` is what the threshold looks at, `items` the child threads.

// Breadth-first search: a thread a vertex of the frontier, an item a neighbour.
struct Search {
    const int* first;
    const int* neighbour;
    int* level;
    const int* order;

    struct Thread {
        int first, items, work, next_level;
    };

    __device__ Thread thread(int index) const {
        int vertex = order[index];
        int begin = first[vertex], degree = first[vertex + 1] - begin;
        return {begin, degree, degree, level[vertex] + 1};
    }

    __device__ void item(const Thread& own, int i) const {
        int other = neighbour[own.first + i];
        // Several threads may reach a vertex; all write the same level.
        if (level[other] < 0) level[other] = own.next_level;
    }
};

// Hash join: a thread a probing tuple, an item a tuple of its bucket; matches are written out.
struct Join {
    const int* probing;
    const int* first;
    const int* key;
    const int* payload;
    const int* place;
    int buckets;
    int* joined;
    const int* order;

    struct Thread {
        int first, items, work, key, place;
    };

    __device__ Thread thread(int index) const {
        int tuple = order[index];
        int bucket = probing[tuple] % buckets, begin = first[bucket], size = first[bucket + 1] - begin;
        return {begin, size, size, probing[tuple], place[tuple]};
    }

    __device__ void item(const Thread& own, int i) const {
        if (key[own.first + i] == own.key) joined[own.place + i] = payload[own.first + i];
    }
};

// Mandelbrot set: a thread a square tile, an item a pixel; `known_work` are the iterations of each tile.
struct Mandelbrot {
    const double* real;
    const double* imaginary;
    const int* known_work;
    int tiles, side, limit;
    int* iterations;
    const int* order;

    struct Thread {
        int tile, items, work;
    };

    __device__ Thread thread(int index) const {
        int tile = order[index];
        return {tile, side * side, known_work[tile]};
    }

    __device__ void item(const Thread& own, int i) const {
        double a = real[own.tile % tiles * side + i % side], b = imaginary[own.tile / tiles * side + i / side];
        double x = a, y = b;
        int count = 1;
        for (; count < limit; ++count) {
            double x_squared = x * x, y_squared = y * y;
            if (!(x_squared + y_squared <= 4.0)) break;
            y = 2 * x * y + b;
            x = x_squared - y_squared + a;
        }
        iterations[own.tile * own.items + i] = count;
    }
};

template <typename Application>
__device__ void run_loop(const Application& application, const typename Application::Thread& own) {
    for (int i = 0; i < own.items; ++i) application.item(own, i);
}

template <typename Application>
__device__ void flat(const Application& application, int threads) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < threads) run_loop(application, application.thread(index));
}

template <typename Application>
__global__ void child(Application application, int index) {
    auto own = application.thread(index);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < own.items) application.item(own, i);
}

// A thread of more work than `threshold` launches a child; one whose launch is refused (a full pool) loops.
template <typename Application>
__device__ void launching(const Application& application, int threads, int threshold, int child_block, int* refused) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= threads) return;
    auto own = application.thread(index);
    if (own.work > threshold) {
        int blocks = (own.items + child_block - 1) / child_block;
        child<Application><<<blocks, child_block, 0, cudaStreamFireAndForget>>>(application, index);
        if (cudaGetLastError() == cudaSuccess) return;
        atomicAdd(refused, 1);
    }
    run_loop(application, own);
}

// The kernels that the host launches, by name; a struct as one parameter has the layout of its fields.
#define KERNELS(NAME, APPLICATION)                                                                                 \
    extern "C" __global__ void NAME##_flat(APPLICATION application, int threads) { flat(application, threads); }   \
    extern "C" __global__ void NAME##_launching(APPLICATION application, int threads, int threshold,               \
                                                int child_block, int* refused) {                                   \
        launching(application, threads, threshold, child_block, refused);                                          \
    }
KERNELS(search, Search)
KERNELS(join, Join)
KERNELS(mandelbrot, Mandelbrot)
