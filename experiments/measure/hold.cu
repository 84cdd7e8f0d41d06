// A kernel of one thread that takes a given time: the head start of the host before timed work.

extern "C" __global__ void hold(long long spin_ns) {
    long long since, time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(since)::"memory");
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time)::"memory");
    } while (time - since < spin_ns);
}
