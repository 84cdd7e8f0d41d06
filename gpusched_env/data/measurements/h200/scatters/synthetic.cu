typedef unsigned int u32; typedef unsigned long long u64;
__device__ __forceinline__ u64 now_ns(){ u64 ns; asm volatile("mov.u64 %0, %globaltimer;":"=l"(ns)); return ns; }
struct Block { u64 start_ns, end_ns, sm; };
// table of `words` floats (power of two). access 0: each lane adds to a word of its own draw. access 1: a warp adds to 32
// words that follow each other. access 2: a warp gathers 32 words and adds them to a row of another draw.
// access 3: gathers only.
extern "C" __global__ void scatter(float *table, u32 words, u32 spread, u32 seed, u32 iters, u32 access, u32 uneven, float *sink, Block *blocks){
  u64 start_ns = 0; if (threadIdx.x==0) start_ns = now_ns();
  u32 t = blockIdx.x*blockDim.x+threadIdx.x, lane = threadIdx.x&31, id = access==0 ? t : t>>5;
  u32 n = iters;
  if (uneven){ u32 h = (blockIdx.x*2654435761u)>>16; n = (h&255) < 8 ? iters*uneven : iters; }
  u32 x = id*0x9e3779b9u + seed*0x85ebca6bu + 1u; float a = 0;
  u32 last = spread-1, all = words-1;
#pragma unroll 1
  for (u32 i=0;i<n;i++){
    x ^= x<<13; x ^= x>>17; x ^= x<<5;
    u32 place = access==0 ? (x & last) : (((x & last)<<5) + lane);
    if (access==3){ a += __ldcg(table + (place & all)); }
    else { float v = 1.0f; if (access==2){ u32 y = x*0x9e3779b9u; v = __ldcg(table + ((((y & last)<<5)+lane) & all)); }
      atomicAdd(table + (place & all), v); }
  }
  if (a==12345.678f) *sink = a;
  __syncthreads();
  if (threadIdx.x==0){ u32 sm; asm volatile("mov.u32 %0, %smid;":"=r"(sm)); blocks[blockIdx.x] = {start_ns, now_ns(), sm}; }
}
